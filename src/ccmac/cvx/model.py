"""One owner's CVXPY model as an agent, and the way back to ``.value`` and ``.dual_value``.

CVXPY states the model as

    min  u'Pu/2 + c'u   s.t.   K u + s = k,   s in zero, nonnegative and second-order cones.

Columns of shared variables are z; all others, CVXPY's auxiliary ones among them, are x. For the
coupled expressions there is one variable t, whose rows t == expressions say what the owner adds to
the sums; t itself is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.settings import SOLUTION_PRESENT
from numpy.typing import NDArray

from ccmac.cones import Cone, Nonnegative, SecondOrder, Zero
from ccmac.cvx.refusals import affine, checked, supported, text
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.problem import MATRICES
from ccmac.problem import Agent as PlainAgent
from ccmac.results import Result

Rows = NDArray[np.intp]
STATUSES = {
    "optimal": "Solved",
    "converged": "Solved",
    "stalled": "AlmostSolved",
    "infeasible": "PrimalInfeasible",
    "unbounded": "DualInfeasible",
}
"""Clarabel's words, as CVXPY reads them; all others are "MaxIterations"."""


def Agent(
    objective: Any,
    constraints: Sequence[Any] = (),
    coupled: Sequence[Any] = (),
    shared: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
) -> PlainAgent:
    """An agent from its owner's own CVXPY model; nobody else's is needed.

    After :func:`ccmac.solve` the variables have ``.value`` and the constraints ``.dual_value``,
    as after ``cp.Problem.solve``. Parameters may get other values between the solves of a
    prepared problem: ``prepared.update()`` reads them.

    Parameters
    ----------
    objective : cvxpy.Minimize or cvxpy.Maximize
        The owner's costs or gains.
    constraints : list of cvxpy.Constraint
        The owner's own.
    coupled : list of cvxpy.Expression
        What this owner adds to the coupled rows, affine. Over all owners they add up to ``== 0``,
        ``<= 0`` or ``>= 0``, as the problem's ``sense`` says; constants count.
    shared : dict of str to cvxpy.Variable, optional
        The owner's copies of what all have in common. All owners give the same names; z has them in
        the order of their names.
    name : str, optional
        Of the owner, for reports and errors.

    Returns
    -------
    ccmac.Agent

    Examples
    --------
    >>> import ccmac
    >>> import cvxpy as cp
    >>> agents = []
    >>> for name, wish in [("north", 3.0), ("south", 5.0)]:
    ...     spend = cp.Variable(nonneg=True)
    ...     cost = cp.Minimize(cp.square(spend - wish))
    ...     agents.append(ccmac.cvx.Agent(cost, coupled=[spend - 3], name=name))
    >>> result = ccmac.solve(ccmac.Problem(agents, sense="<="), tol=1e-8)
    >>> result.status, round(float(spend.value), 4)
    ('optimal', 4.0)
    """
    where = "cvx.Agent" if name is None else f"cvx.Agent {name}"
    problem = checked(where, objective, constraints)
    if not isinstance(coupled, list | tuple):
        raise InputError(f"{where}, coupled: give a list of affine expressions")
    parts = [affine(f"{where}, coupled {k}", part) for k, part in enumerate(coupled)]
    variables = [_shared(where, key, (shared or {})[key]) for key in sorted(shared or {})]
    if len({v.id for v in variables}) < len(variables):
        raise InputError(f"{where}, shared: one variable has two names; give each its own")
    return Model(where, problem, parts, variables, name).agent()


def _shared(where: str, name: str, variable: Any) -> cp.Variable:
    if isinstance(variable, cp.Variable):
        return variable
    raise InputError(
        f"{where}, shared {name}: {text(variable)} is no cp.Variable; give a whole one"
    )


@dataclass(frozen=True)
class Form:
    """A canonical form: which of its columns are x, z and t, and which rows became what."""

    data: Mapping[str, Any]
    back: tuple[Any, Any]  # CVXPY's own way back
    K: sp.csr_array
    x: sp.csr_array  # selections: u = x x_i + z z + t t_i
    z: sp.csr_array
    t: sp.csr_array
    coupled: Rows
    local: Rows  # of x alone
    demands: Rows  # of z alone
    upper: Rows  # the tightest bounds of entries of x
    lower: Rows
    cones: Rows  # all others, in cones

    @classmethod
    def of(cls, data: Mapping[str, Any], back: tuple[Any, Any], shared: Any, t: Any) -> Form:
        """Sorted by where the entries of each row are."""
        K = sp.csr_array(data["A"])
        K.eliminate_zeros()
        k = data["b"]
        place = data["param_prob"].var_id_to_col
        size = K.shape[1]
        at_z = _columns(shared, place)
        at_t = _columns(t, place)
        at_x = np.setdiff1d(np.arange(size), np.append(at_z, at_t))
        x, z, T = (_selection(at, size) for at in (at_x, at_z, at_t))
        coupled = sp.csc_array(K @ T).indices.astype(np.intp)
        dims = data["dims"]
        rows = np.arange(K.shape[0])
        equal = rows < dims.zero
        linear = rows < dims.zero + dims.nonneg
        in_x = np.diff((K @ x).indptr)
        in_z = np.diff((K @ z).indptr)
        idle = linear & (in_x + in_z == 0) & np.where(equal, k == 0, k >= 0)
        idle[coupled] = True
        single = ~equal & linear & (in_x == 1) & (in_z == 0)
        upper, lower = _tightest(K @ x, k, rows[single])
        single &= bool(len(upper) + len(lower))
        # Without cones every method takes the model, masked sums too, and ccmac-check confirms it.
        plain = equal | bool(np.all(linear & ((in_x == 0) | (in_z == 0)) | idle))
        local = plain & (in_x > 0) & (in_z == 0) & ~(idle | single)
        demands = plain & (in_x == 0) & (in_z > 0) & ~idle
        rest = ~(idle | single | local | demands)
        return cls(
            data, back, K, x, z, T, coupled, rows[local], rows[demands], upper, lower, rows[rest]
        )

    @property
    def slacks(self) -> list[Cone]:
        """The cones of the rows ``cones``."""
        dims = self.data["dims"]
        zero = int(np.searchsorted(self.cones, dims.zero))
        linear = int(np.searchsorted(self.cones, dims.zero + dims.nonneg))
        sizes = (Zero, zero), (Nonnegative, linear - zero), *((SecondOrder, n) for n in dims.soc)
        return [cone(int(size)) for cone, size in sizes if size]


def _columns(variables: Sequence[cp.Variable], place: Mapping[int, int]) -> Rows:
    """Where the entries of variables are; -1 for those that nothing contains."""
    found = [
        place[v.id] + np.arange(v.size) if v.id in place else np.full(v.size, -1) for v in variables
    ]
    return np.concatenate([np.zeros(0, dtype=np.intp), *found]).astype(np.intp)


def _selection(at: Rows, size: int) -> sp.csr_array:
    """The matrix that puts entries at their places."""
    there = np.flatnonzero(at >= 0)
    return sp.csr_array((np.ones(len(there)), (at[there], there)), shape=(size, len(at)))


def _tightest(entries: sp.csr_array, k: Array, rows: Rows) -> tuple[Rows, Rows]:
    """Of rows a x_j <= k the tightest upper and lower bounds; none if some exclude each other."""
    part = entries[rows]
    value = k[rows] / np.abs(part.data)
    order = np.lexsort((value, part.indices))
    found = []
    ends = np.full((2, entries.shape[1]), np.inf)
    for end, side in zip(ends, (part.data > 0, part.data < 0), strict=True):
        mine = order[side[order]]
        columns, first = np.unique(part.indices[mine], return_index=True)
        end[columns] = value[mine[first]]
        found.append(rows[mine[first]])
    if np.any(ends[0] + ends[1] < 0):
        found = [rows[:0], rows[:0]]
    return found[0], found[1]


class Model:
    """An owner's problem with its coupled expressions and shared variables.

    ``then(status, result)`` is called when a solution has arrived in this model.
    """

    def __init__(
        self,
        where: str,
        problem: cp.Problem,
        coupled: Sequence[cp.Expression],
        shared: Sequence[cp.Variable],
        name: str | None,
        then: Callable[[str, Result], None] | None = None,
    ) -> None:
        self.where = where
        self.name = name
        self.then = then
        self.user = problem
        # CVXPY replaces variables that have attributes: an equal one without stands for them.
        plain = {
            v.id: cp.Variable(v.size) for v in shared if any(map(_says, v.attributes.values()))
        }
        extra = [plain[v.id] == cp.vec(v, order="F") for v in shared if v.id in plain]
        self.copies = list(shared)
        self.ends = np.cumsum([v.size for v in shared])[:-1]
        self.shared = [plain.get(v.id, v) for v in shared]
        self.t = [cp.Variable(sum(part.size for part in coupled))] if coupled else []
        for t in self.t:
            extra.append(t == cp.hstack([cp.vec(part, order="F") for part in coupled]))
        self.problem = cp.Problem(problem.objective, problem.constraints + extra)
        self.form: Form  # of the agent as it was made last
        self.made: PlainAgent

    def agent(self) -> PlainAgent:
        """The agent, with the parameters as they are now."""
        self.form, self.made = self._made()
        return self.made

    def sides(self) -> dict[str, Array]:
        """The vectors of the agent with the parameters as they are now; its matrices must stay."""
        form, new = self._made()
        old = self.made
        for name in (*MATRICES, "G", "H"):
            if not _alike(getattr(old, name), getattr(new, name)):
                raise _changed(self.where, f"block {name}")
        H, _, _ = old.objective.quadratic(0, 0)
        H_now, g, _ = new.objective.quadratic(0, 0)
        if not _alike(H, H_now):
            raise _changed(self.where, "the quadratic term")
        self.form, self.made = form, new
        found = {name: getattr(new, name) for name in ("b", "c", "e", "h", "lower", "upper")}
        return {"g": g} | {name: side for name, side in found.items() if side is not None}

    def _made(self) -> tuple[Form, PlainAgent]:
        if missing := [p.name() for p in self.problem.parameters() if p.value is None]:
            raise InputError(f"{self.where}: parameter {missing[0]} has no value; set .value")
        data, *back = self.problem.get_problem_data(cp.CLARABEL, solver_opts={})
        supported(self.where, self.user, data["dims"])
        form = Form.of(data, (back[0], back[1]), self.shared, self.t)
        K = form.K
        k = data["b"]
        both = sp.hstack([form.x, form.z], format="csr")
        P = data.get("P", sp.csr_array((len(data["c"]), len(data["c"]))))
        turn = -1.0 / sp.csc_array(K @ form.t).data
        on_x = K @ form.x
        on_z = K @ form.z
        blocks: dict[str, Any] = {}
        if len(form.coupled):
            blocks |= {"A": sp.diags_array(turn) @ on_x[form.coupled], "b": turn * k[form.coupled]}
        if on_z[form.coupled].nnz:
            blocks["B"] = sp.diags_array(turn) @ on_z[form.coupled]
        senses = np.where(np.arange(len(k)) < data["dims"].zero, "==", "<=")
        if len(form.local):
            blocks |= {"C": on_x[form.local], "c": k[form.local], "C_sense": senses[form.local]}
        if len(form.cones):
            blocks |= {"G": on_x[form.cones], "h": k[form.cones], "cones": form.slacks}
            if on_z[form.cones].nnz:
                blocks["H"] = on_z[form.cones]
        if len(form.demands) or not blocks:  # without any block nothing tells the size of z
            blocks |= {"D": on_z[form.demands], "e": k[form.demands]}
            blocks["D_sense"] = senses[form.demands]
        for limit, rows, none in ("upper", form.upper, np.inf), ("lower", form.lower, -np.inf):
            if len(rows):
                part = on_x[rows]
                blocks[limit] = np.full(on_x.shape[1], none)
                blocks[limit][part.indices] = k[rows] / part.data
        f = Quadratic(sp.csr_array(both.T @ P @ both), -(both.T @ data["c"]))
        return form, PlainAgent(f, **blocks, name=self.name, model=self)

    def receive(self, result: Result, at: int) -> None:
        """Values and multipliers of entry ``at`` of a result, into the owner's own model."""
        form = self.form
        x = np.asarray(result.x[at])
        z = np.asarray(result.z)
        u = form.x @ x + form.z @ z
        rows = sp.csc_array(form.K @ form.t)
        u += form.t @ ((form.data["b"] - form.K @ u)[rows.indices] / rows.data)
        raw = SimpleNamespace(
            status=STATUSES.get(result.status, "MaxIterations"),
            x=u,
            z=self._duals(result.multipliers, at),
            obj_val=result.objective,
            solve_time=result.seconds,
            iterations=result.iterations,
        )
        with warnings.catch_warnings():  # the result has said what is not exact
            warnings.simplefilter("ignore")
            self.problem.unpack_results(raw, *form.back)
        for v, part in zip(self.copies, np.split(z, self.ends), strict=False):
            if self.problem.status in SOLUTION_PRESENT:  # also where the model does not use it
                v.save_value(part.reshape(v.shape, order="F"))
        if self.then is not None:
            self.then(self.problem.status, result)

    def _duals(self, multipliers: Any, at: int) -> Array | None:
        """By the rows of K; zero where a bound is not the tightest."""
        if multipliers is None:
            return None
        form = self.form
        y = np.zeros(form.K.shape[0])
        groups = (
            (form.local, multipliers.local),
            (form.demands, multipliers.shared),
            (form.cones, multipliers.cones),
        )
        for rows, found in groups:
            if len(rows):
                y[rows] = found[at]
        on_x = form.K @ form.x
        for rows, found in (form.upper, multipliers.upper), (form.lower, multipliers.lower):
            if len(rows):
                part = on_x[rows]
                y[rows] = found[at][part.indices] / np.abs(part.data)
        return y


def _alike(old: Any, new: Any) -> bool:
    """Whether two blocks are the same."""
    if old is None or new is None:
        return old is new
    return bool(old.shape == new.shape and not abs(old - new).max() if old.size else True)


def _changed(where: str, what: str) -> InputError:
    return InputError(
        f"{where}: its parameters change {what}, not only right-hand sides and linear terms; "
        "prepare the changed problem"
    )


def _says(attribute: Any) -> bool:
    return attribute is not None and attribute is not False
