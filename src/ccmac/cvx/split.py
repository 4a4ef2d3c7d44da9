"""A ``cp.Problem`` divided among owners: what is one owner's own, and what couples them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import BinaryOperator
from cvxpy.constraints import Equality, Inequality, Zero
from cvxpy.reductions.solution import Solution, failure_solution
from cvxpy.settings import SOLUTION_PRESENT

from ccmac.cvx.model import Model
from ccmac.cvx.refusals import checked, text
from ccmac.errors import InputError
from ccmac.problem import Problem
from ccmac.results import Result

SHARED = "/shared"  # keys of what no single owner has
CONSTANT = "/constant"
COMMON = (SHARED, CONSTANT)
PRODUCTS = ("kron", "conv", "convolve")  # of which one factor is constant


def split(problem: Any, owners: Mapping[str, Sequence[Any]], shared: Sequence[Any] = ()) -> Problem:
    """An existing CVXPY problem, divided among owners.

    A constraint with variables of one owner stays with it; one of several owners becomes coupled
    rows, to which each adds its part. Terms of the objective go to their owners. After
    :func:`ccmac.solve` the problem has its ``.value``, and so have variables and constraints.

    Parameters
    ----------
    problem : cvxpy.Problem
        Convex, with linear, quadratic and second-order cone terms.
    owners : dict of str to list of cvxpy.Variable
        Whose the variables are.
    shared : list of cvxpy.Variable
        What all owners know. Terms of these alone go to the first owner.

    Returns
    -------
    ccmac.Problem

    Examples
    --------
    >>> import ccmac
    >>> import cvxpy as cp
    >>> x, y = cp.Variable(name="x"), cp.Variable(name="y")
    >>> whole = cp.Problem(cp.Minimize((x - 3) ** 2 + (y - 5) ** 2), [x + y <= 6])
    >>> result = ccmac.solve(ccmac.cvx.split(whole, {"north": [x], "south": [y]}), tol=1e-8)
    >>> round(float(whole.value), 4), round(float(whole.constraints[0].dual_value), 4)
    (2.0, 2.0)
    """
    if not isinstance(problem, cp.Problem):
        raise InputError(
            f"cvx.split: {text(problem)} is no cp.Problem; use ccmac.cvx.Agent for parts"
        )
    whole = checked("cvx.split", problem.objective, problem.constraints)
    division = Division(whose(problem, owners, shared), list(owners))
    own: dict[str, list[cp.Constraint]] = {name: [] for name in owners}
    rows: dict[str, list[cp.Expression]] = {name: [] for name in owners}
    coupled = []
    for constraint in whole.constraints:
        names = division.of(constraint)
        if len(names) < 2:
            own[next(iter(names), division.first)].append(constraint)
            continue
        coupled.append(constraint)
        for name, part in division.parts(constraint, _difference(constraint)).items():
            rows[name].append(part if part.is_affine() else cp.Variable(part.shape))
            if not part.is_affine():
                own[name].append(part <= rows[name][-1])
    objective = problem.objective
    costs = division.parts(objective, objective.expr)
    then = Whole(problem, coupled).receive
    place = {c.id: k for k, c in enumerate(problem.constraints)}
    agents = [
        Model(
            f"cvx.split, owner {name}",
            cp.Problem(type(objective)(costs[name]), own[name]),
            rows[name],
            list(shared),
            name,
            then if name == division.last else None,
        ).agent()
        for name in owners
    ]
    sense = [s for c in coupled for s in ["<=" if isinstance(c, Inequality) else "=="] * c.size]
    return Problem(
        agents,
        q=sum(v.size for v in shared),
        m=len(sense),
        sense=sense or None,
        row_names=_labels([(_called(c, place[c.id]), c.size) for c in coupled]),
        z_names=_labels([(v.name(), v.size) for v in shared]),
    )


def whose(problem: cp.Problem, owners: Any, shared: Any) -> dict[int, str]:
    """{variable: owner}; shared ones have none. Every variable must be listed, once."""
    if not isinstance(owners, Mapping) or not owners:
        raise InputError("cvx.split, owners: give a mapping such as {'north': [x, p]}")
    groups = [*owners.items(), (None, shared)]
    known = {v.id: v for v in problem.variables()}
    found: dict[int, str | None] = {}
    for name, variables in groups:
        where = "cvx.split, shared" if name is None else f"cvx.split, owner {name}"
        if not isinstance(variables, list | tuple):
            raise InputError(f"{where}: give a list of variables, such as [x]")
        for v in variables:
            if not isinstance(v, cp.Variable):
                raise InputError(
                    f"{where}: {text(v)} is no cp.Variable; list whole variables, not parts of them"
                )
            if v.id not in known:
                raise InputError(
                    f"{where}: variable {v.name()} is not in the problem; leave it out"
                )
            if v.id in found:
                raise InputError(
                    f"{where}: variable {v.name()} is listed twice; what several owners know "
                    "is shared"
                )
            found[v.id] = name
    for v in known.values():
        if v.id not in found:
            raise InputError(
                f"cvx.split: variable {v.name()} has no owner; list it in owners or in shared"
            )
    return {key: name for key, name in found.items() if name is not None}


class Division:
    """Which owner has which variables, terms and constraints of a model."""

    def __init__(self, owner: Mapping[int, str], names: Sequence[str]) -> None:
        self.owner = owner
        self.names = names
        self.first = names[0]
        self.last = names[-1]

    def of(self, thing: Any) -> set[str]:
        """The owners of what a thing contains; none where all of it is shared or constant."""
        return {self.owner[v.id] for v in thing.variables() if v.id in self.owner}

    def parts(self, thing: Any, expression: cp.Expression) -> dict[str, cp.Expression]:
        """What each owner adds to an expression; one of them has constants and shared terms."""
        found = self._divided(thing, expression)
        keeper = next((name for name in self.names if name in found), self.first)
        zero = cp.Constant(np.zeros(expression.shape))
        whole = {name: zero + found[name] if name in found else zero for name in self.names}
        for key in COMMON:
            if key in found:
                whole[keeper] += found[key]
        return whole

    def _divided(self, thing: Any, node: cp.Expression) -> dict[str, cp.Expression]:
        """{owner, or one of COMMON: its part}, which add up; ``thing`` is what the node is in."""
        if not node.variables():
            return {CONSTANT: node}
        names = self.of(node)
        if len(names) < 2:
            return {next(iter(names), SHARED): node}
        if not isinstance(node, AffAtom):
            raise InputError(
                f"cvx.split: {text(node)} in {text(thing)} has variables of "
                f"{' and '.join(sorted(names))}; give one of them a variable v with v == "
                f"{text(node.args[0])}, and write it with v"
            )
        args = [self._divided(thing, arg) for arg in node.args]
        if isinstance(node, AddExpression):
            keys = dict.fromkeys(key for parts in args for key in parts)
            return {key: sum(parts[key] for parts in args if key in parts) for key in keys}
        product = isinstance(node, BinaryOperator) or type(node).__name__ in PRODUCTS
        moving = [not product or bool(arg.variables()) for arg in node.args]
        found = {}
        for key in dict.fromkeys(
            k for parts, m in zip(args, moving, strict=True) if m for k in parts
        ):
            found[key] = node.copy(
                [
                    parts.get(key, cp.Constant(np.zeros(arg.shape))) if m else arg
                    for parts, arg, m in zip(args, node.args, moving, strict=True)
                ]
            )
        return found


def _difference(constraint: cp.Constraint) -> cp.Expression:
    """What a coupled constraint compares with zero."""
    if isinstance(constraint, Equality | Inequality | Zero):
        return constraint.expr
    raise InputError(
        f"cvx.split: {text(constraint)} has variables of several owners; write it by ==, <= or >= "
        "with one owner's variables in each term"
    )


def _called(constraint: cp.Constraint, place: int) -> str:
    """Its label, its text if that is short, or its place."""
    words = getattr(constraint, "label", None) or text(constraint)
    return words if len(words) <= 30 else f"constraint {place}"


def _labels(parts: Sequence[tuple[str, int]]) -> list[str] | None:
    """A name for every entry; different ones."""
    names = [f"{name}[{k}]" if size > 1 else name for name, size in parts for k in range(size)]
    return names if names and len({*names}) == len(names) else None


class Whole:
    """The problem that was divided: what its owners found, put together."""

    def __init__(self, problem: cp.Problem, coupled: Sequence[cp.Constraint]) -> None:
        self.problem = problem
        self.coupled = coupled

    def receive(self, status: str, result: Result) -> None:
        """After all owners: multipliers of coupled constraints, value and status."""
        problem = self.problem
        if status not in SOLUTION_PRESENT:
            nothing = failure_solution(status)
            nothing.opt_val *= 1 if isinstance(problem.objective, cp.Minimize) else -1
            problem.unpack(nothing)
            return
        values = {v.id: v.value for v in problem.variables()}
        duals = {}
        start = 0
        for c in self.coupled if result.multipliers is not None else ():
            y = np.asarray(result.multipliers.coupled[start : start + c.size])
            duals[c.id] = y.reshape(c.shape, order="F")
            start += c.size
        problem.unpack(Solution(status, result.objective, values, duals, {}))
