"""What ccmac cannot solve, said in one line: which atom, constraint or variable, what instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import cvxpy as cp
from cvxpy.atoms import EXP_ATOMS, PSD_ATOMS
from cvxpy.constraints import PSD, ExpCone, PowCone3D, PowConeND

from ccmac.errors import SHOWN, InputError, cut

POWERS = ("power", "pnorm", "geo")  # of classes whose names are others from version to version
CONES = (  # what in ``dims``, which atoms and constraints lead there, in words
    (("exp",), (*EXP_ATOMS, ExpCone), "an exponential cone"),
    (("psd",), (*PSD_ATOMS, PSD), "a semidefinite cone"),
    (("p3d", "pnd"), (PowCone3D, PowConeND), "a power cone (approx=True goes without)"),
)
HAVE = "ccmac has linear, quadratic and second-order cone terms"


def text(thing: Any) -> str:
    """A constraint or an expression as CVXPY prints it, in one line and not too long."""
    return cut(" ".join(str(thing).split()), SHOWN)


def nodes(things: Iterable[Any]) -> Iterator[Any]:
    """Everything that constraints and expressions are made of, the innermost first."""
    for thing in things:
        yield from nodes(getattr(thing, "args", ()))
        yield thing


def checked(where: str, objective: Any, constraints: Any) -> cp.Problem:
    """The CVXPY problem, if it is convex, continuous and real, and its parameters have values."""
    if not isinstance(objective, cp.Minimize | cp.Maximize):
        raise InputError(f"{where}, objective: give cp.Minimize(...) or cp.Maximize(...)")
    if not isinstance(constraints, list | tuple):
        raise InputError(f"{where}, constraints: give a list of CVXPY constraints")
    for k, given in enumerate(constraints):
        if not isinstance(given, cp.Constraint):
            raise InputError(
                f"{where}, constraint {k}: {text(given)} is a {type(given).__name__}, no CVXPY "
                "constraint; compare expressions that have variables"
            )
    problem = cp.Problem(objective, list(constraints))
    for leaf in problem.variables():
        if leaf.attributes["integer"] or leaf.attributes["boolean"]:
            raise InputError(
                f"{where}: variable {leaf.name()} must be whole numbers; ccmac solves continuous "
                "problems: leave integer and boolean out, or bound it instead"
            )
    for node in nodes([objective.expr, *constraints]):
        if node.is_complex() if isinstance(node, cp.Expression) else False:
            raise InputError(
                f"{where}: {text(node)} is complex; state its real and imaginary parts apart"
            )
    for parameter in problem.parameters():
        if parameter.value is None:
            raise InputError(f"{where}: parameter {parameter.name()} has no value; set .value")
    for part in (objective, *constraints):
        if not part.is_dcp():
            node = next((n for n in nodes([part]) if _breaks(n)), part)
            raise InputError(
                f"{where}: {text(node)} in {text(part)} breaks CVXPY's rules of convexity; "
                "rewrite it by convex atoms"
            )
    return problem


def _breaks(node: Any) -> bool:
    return isinstance(node, cp.Expression) and not node.is_dcp()


def affine(where: str, expression: Any) -> cp.Expression:
    """An affine expression in CVXPY, such as a part of the coupled rows."""
    if isinstance(expression, cp.Constraint):
        raise InputError(
            f"{where}: {text(expression)} is a constraint; give the expression alone, and the "
            "sense to ccmac.Problem(..., sense=)"
        )
    expression = cp.Expression.cast_to_const(expression)
    if not expression.is_affine():
        raise InputError(
            f"{where}: {text(expression)} is not affine; put a variable t in its place and "
            f"{text(expression)} <= t among the constraints"
        )
    return expression


def supported(where: str, problem: cp.Problem, dims: Any) -> None:
    """The cones of a canonical form must be those that ccmac has."""
    for names, kinds, words in CONES:
        if any(getattr(dims, name, ()) for name in names):
            parts = [problem.objective.expr, *problem.constraints]
            powers = POWERS if "p3d" in names else ()
            found = next(
                (
                    node
                    for node in nodes(parts)
                    if isinstance(node, kinds) or type(node).__name__.lower().startswith(powers)
                ),
                None,
            )
            name = "a variable's attribute" if found is None else text(found)
            raise InputError(f"{where}: {name} needs {words}; {HAVE}")
