"""Finds contradictions among the equations, and proves them in the user's own blocks.

Inside an agent, among equations that all know, or at a least-squares point; what is claimed is a
certificate of :mod:`ccmac.certificates.infeasibility`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.infeasibility import VISIBLE, Infeasibility, claimed, described, doubted
from ccmac.certificates.prices import CONFLICT, Recovery, split
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import EPS_LONG, halves, norm, product, summed
from ccmac.linalg.lanczos import agreed_dots
from ccmac.linalg.ranks import Doubt, RowSpace
from ccmac.linalg.tolerances import EPS
from ccmac.runtime.space import lengths, piece_sums, row_dots
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

SEEN = 64 * EPS  # share of a right-hand side below which a misfit is rounding
TURNED = 1e-11  # share below which it may come from the angles of the kernels


@dataclass(frozen=True)
class _Contradiction:
    """lambda for M w = v: |lambda'v|, a lower bound of it, and an upper bound of ||M'lambda||."""

    price: Array
    value: float
    sure: float
    defect: float


def contradiction(block: Any, right: Array, space: RowSpace) -> _Contradiction | None:
    """What of ``right`` lies outside the range, as a multiplier of rows; None if it is rounding."""
    unit, zero = space.inverse_lengths * right, space.inverse_lengths == 0
    if np.any(zero & (right != 0)):  # 0 = right
        price = np.where(zero & (np.abs(right) == np.abs(right[zero]).max()), np.sign(right), 0.0)
        value = float(np.abs(price) @ np.abs(right))
        return _Contradiction(price, value, value, 0.0)
    gap = unit - space.left @ (space.left.T @ unit)
    gap -= space.left @ (space.left.T @ gap)
    length = float(np.linalg.norm(gap))
    if length <= SEEN * math.sqrt(len(gap)) * float(np.linalg.norm(unit)):
        return None
    price = space.inverse_lengths * gap / length
    return _weighed(dense(block), right, price)


def _weighed(matrix: Array, right: Array, price: Array) -> _Contradiction:
    """Value and defect in extended precision, rounding against the claim."""
    noise = (len(price) + 2) * EPS_LONG * float(np.abs(price) @ np.abs(right))
    value = abs(float(product(right[None], price)[0]))
    return _Contradiction(price, value, value - noise, _defect([(matrix, price)]))


def _defect(pairs: list[tuple[Any, Array]]) -> float:
    """||sum M'price|| at most; exactly 0 where it is seen to be."""
    total = sum(product(matrix.T, price) for matrix, price in pairs)
    if not np.any(total):
        return 0.0
    spread = sum(norm(np.abs(matrix).T @ np.abs(price)) for matrix, price in pairs)
    return norm(total) + (sum(len(price) for _, price in pairs) + 2) * EPS_LONG * spread


def _outside(reduced: Reduced) -> Iterator[Array]:
    """What of the right-hand sides lies outside the range, in scaled rows, if not by rounding.

    Then what does of the D_i alone: angles of the C_i, which turn the rest, hide nothing there.
    """
    right = reduced.right
    outside = reduced.U_null @ (reduced.U_null.T @ right)
    length, whole = float(np.linalg.norm(outside)), float(np.linalg.norm(right))
    if length > (SEEN * math.sqrt(len(right)) + min(reduced.angle, TURNED)) * whole:
        yield outside
    seen = contradiction(reduced.D, reduced.e, reduced.shared)
    if seen is not None:
        yield np.concatenate([np.zeros(len(reduced.unit)), seen.value * seen.price])


class Conflicts:
    """Finds and proves contradictions among the equations of a :class:`Recovery`."""

    def __init__(self, work: Workspace, recovery: Recovery) -> None:
        self.work, self.user = work, recovery
        self.problem, self.runtime = recovery.problem, recovery.runtime
        self.doubt = ""  # why no bound may be believed, where nothing was claimed

    def own(self) -> Infeasibility | None:
        """An agent whose own C_i x = c_i or D_i z = e_i cannot hold; one averaging if any.

        Every agent says value and defect of a contradiction, or 0 and the condition of its rows.
        It carries the equations too where all may know them.
        """
        problem, found = self.problem, {}
        if not {"C", "D"} & problem.present or self.work.agreed.get("independent"):
            return None
        rows = np.zeros((len(problem.agents), 5))
        families = self.work.local.spaces, self.work.shared.spaces
        for k, (i, agent) in enumerate(problem.agents.items()):
            for column, (block, side) in enumerate(((agent.C, agent.c), (agent.D, agent.e))):
                if block is None or not families[column]:
                    continue
                space = families[column][k]
                rows[k, 4] += space.rank < block.shape[0]
                right = np.zeros(block.shape[0]) if side is None else side
                seen = contradiction(block, right, space)
                size = float(np.linalg.norm(space.coordinates(right)))
                sure = seen is not None and claimed(seen.sure, seen.defect, size)
                if seen is not None and sure and not space.solvable:
                    found[i, column] = seen
                    rows[k, 2 * column : 2 * column + 2] = seen.value, seen.defect
                elif seen is not None and doubted(seen.sure, seen.defect, size):
                    rows[k, 2 * column : 2 * column + 2] = -seen.value, seen.defect
                else:
                    near = space.doubt > Doubt.CONVENTION
                    rows[k, 2 * column + 1] = 1 / EPS if near else space.condition
        told = self.runtime.ride(rows, whole=True)
        _ = self.work.reduced  # where all may know the equations, they travel along
        seen_by_all = told.value
        self.work.agreed["independent"] = not seen_by_all[:, 4].any()  # whatever the right sides
        agreed = np.where(seen_by_all[:, :4:2] == 0, seen_by_all[:, 1:4:2], 1.0)
        self.work.own_condition = max(1.0, float(agreed.max()))
        for column, (block, right) in enumerate((("C", "c"), ("D", "e"))):
            values = seen_by_all[:, 2 * column]
            if (values < 0).any():
                k = int(np.argmin(values))
                self._doubt(f"{block} of agent {k}", *seen_by_all[k, 2 * column : 2 * column + 2])
            if (values > 0).any():
                agent_index = int(np.argmax(values))
                mine = found.get((agent_index, column))
                price = {} if mine is None else {agent_index: mine.price}
                return Infeasibility(
                    f"infeasible: agent {agent_index}'s own equations {block} contradict each "
                    f"other (right-hand side {right} is {values[agent_index]:.3g} away from the "
                    f"range); correct {block} or {right} of agent {agent_index}",
                    np.zeros(problem.m), price if block == "C" else {},
                    price if block == "D" else {},
                    float(seen_by_all[agent_index, 2 * column + 1]), float(values[agent_index]),
                )  # fmt: skip
        return None

    def together(self, reduced: Reduced) -> Infeasibility | None:
        """Among all equations, where everybody knows them: no rounds unless there is one."""
        if not reduced.U_null.shape[1]:
            return None
        tried = (self._along(reduced, outside) for outside in _outside(reduced))
        return next((found for found in tried if found is not None), None)

    def _along(self, reduced: Reduced, outside: Array) -> Infeasibility | None:
        """The certificate with multipliers along ``outside``, if it proves something."""
        right, scaled = reduced.right, outside / np.linalg.norm(outside)
        price, shared = reduced.prices(scaled)
        local = [
            -kernel.space.multipliers(kernel.space.basis.T @ (A.T @ price))
            for kernel, A in zip(reduced.kernels, reduced.A, strict=True)
        ]
        rows = [self._share(reduced, k, price, kappa) for k, kappa in enumerate(local)]
        gathered = self.runtime.gather(np.array(rows))
        off_z = _defect([(reduced.Bbar, price), (reduced.D, shared)])
        off_z += self.problem.n * EPS_LONG * norm(reduced.size_B.T @ np.abs(price))
        value = float(summed(gathered[:, :2])[0] + product(reduced.e[None], shared)[0])
        terms = float(np.add.reduce(gathered[:, 3]) + np.abs(reduced.e) @ np.abs(shared))
        defect = math.sqrt(float(np.add.reduce(gathered[:, 2])) + off_z * off_z)
        inside = float(np.linalg.norm((reduced.U.T @ right) / reduced.sigma))
        size = math.hypot(inside, math.sqrt(float(np.add.reduce(gathered[:, 5]))))
        sure = abs(value) - 4 * EPS * terms
        if not claimed(sure, defect, size) or reduced.solvable:
            if doubted(sure, defect, size):
                self._doubt("all agents together", value, defect)
            return None
        ends = np.cumsum(self.work.curvature.r.astype(int))[:-1]
        by_agent = np.split(reduced.unit_D * shared, ends)
        weights = {
            "coupled": [0] if np.linalg.norm(scaled[: len(price)]) > VISIBLE else [],
            "C": [int(i) for i in np.flatnonzero(gathered[:, 4] > VISIBLE)],
            "D": [i for i, v in enumerate(by_agent) if np.linalg.norm(v) > VISIBLE],
        }
        norms = {
            "coupled": norm(outside[: len(price)] / reduced.unit),
            "shared": norm(outside[len(price) :] / reduced.unit_D),
        }
        agents = list(self.problem.agents)
        message = described(weights, norms)
        if self.user.coupling.empty and weights["coupled"]:
            message = (
                "infeasible: no agent has A or B, but the b_i add up to "
                f"{float(np.linalg.norm(reduced.beta)):.3g}, not to zero; correct the b_i or give "
                "the coupled equation its A and B"
            )
        return Infeasibility(
            message, price,
            {i: v for i, v in zip(agents, local, strict=True) if v.size},
            {i: by_agent[i] for i in agents if by_agent[i].size}, defect, value,
        )  # fmt: skip

    def _doubt(self, whose: str, value: float, defect: float) -> None:
        """Of a contradiction beyond rounding, too small for a proof or met by large points."""
        self.doubt = (
            f"the equations of {whose} contradict each other by {abs(value):.2g} (rows of unit "
            f"length) but for points of norm {abs(value / defect) if defect else math.inf:.2g} and "
            "more: too little for a proof; what is said of the error is an estimate, for the "
            "nearest right-hand sides that agree"
        )

    def _share(self, reduced: Reduced, k: int, price: Array, kappa: Array) -> list[float]:
        """Of one agent: lambda'v in halves, squared defect, terms, ||kappa||, ||C_i^+ c_i||^2."""
        agent = list(self.problem.agents.values())[k]
        b = np.zeros(len(price)) if agent.b is None else agent.b
        c = np.zeros(len(kappa)) if agent.c is None else agent.c
        value = halves(product(b[None], price) + product(c[None], kappa))
        terms = float(np.abs(b) @ np.abs(price) + np.abs(c) @ np.abs(kappa))
        off = _defect([(reduced.A[k], price), (reduced.C[k], kappa)])
        point = reduced.kernels[k].point
        return [*value, off * off, terms, float(np.linalg.norm(kappa)), float(point @ point)]

    def at(self, z: Array, price: Array, norms: dict[str, float]) -> Infeasibility | None:
        """The certificate at a least-squares point (repaired as far as it goes), or None.

        ``price`` is q(S) times the coupled misfit there: lambda = (price, kappa, delta, nu) has
        K'lambda = 0 and lambda'v = -(sum of squared misfits in the normalizers' metric) < 0.
        """
        size = self.user.scale()
        violation = max(norms["coupled"], norms["shared"])
        if violation <= CONFLICT * max(1.0, size):
            return None
        gx, gz = np.zeros(self.user.space.x_size), np.zeros((len(z), self.problem.q))
        if not self.user.coupling.empty:
            gx, gz = self.user.coupling.adjoint(price)
        local = self.user.local.multipliers(gx)
        shared = [np.zeros(k) for k in self.problem.r.values()]
        if not self.user.shared.empty:
            shared = self._shared_conflict(self.runtime.average(z), gz)
        total_x = gx + self.user.C.adjoint(np.concatenate(local)) if not self.user.C.empty else gx
        total_z = gz + self.user.D.adjoint(np.concatenate(shared)).reshape(gz.shape)
        wide = (len(self.problem.agents), price.shape[1])
        values = np.stack(
            [
                piece_sums(total_x**2, self.user.space.d),
                row_dots(self.user.b[:, : price.shape[1]], np.broadcast_to(price, wide)),
                _dots(local, split(self.user.c, self.user.C.rows)),
                _dots(shared, split(self.user.e, self.user.D.rows)),
            ],
            axis=1,
        )
        told = self.runtime.ride(values)
        mean = self.problem.n * self.runtime.average(total_z)
        defect_x, *parts = told.value
        defect_z = agreed_dots(self.runtime, mean, mean)[0]
        coupled = np.zeros(self.problem.m)
        coupled[: price.shape[1]] = price[0]
        agents = list(self.problem.agents)
        defect, value = float(np.sqrt(defect_x + defect_z)), float(sum(parts))
        if not claimed(abs(value), defect, size):
            return None
        weights = self._weights(agents, local, shared, coupled)
        return Infeasibility(
            described(weights, norms), coupled,
            {i: v for i, v in zip(agents, local, strict=True) if v.size},
            {i: v for i, v in zip(agents, shared, strict=True) if v.size}, defect, value,
        )  # fmt: skip

    def _shared_conflict(self, mean: Array, gz: Array) -> list[Array]:
        """delta with mean(D'delta) = -mean(B'y): the misfit of D plus what balances the price."""
        runtime, family = self.runtime, self.user.shared.family
        count = len(self.problem.agents)
        rows = np.ascontiguousarray(np.broadcast_to(mean, (count, self.problem.q)))
        misfit = family.forward(rows) - self.user.shared.right
        back = family.adjoint(misfit).reshape(count, self.problem.q)
        sizes = runtime.ride(np.stack([row_dots(gz, gz), row_dots(back, back)], axis=1))
        target = runtime.average(gz + back)
        direction = self.user.solve_shared(-target, sum(lengths(sizes)))
        wide = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
        return self.user.shared.in_user_rows(misfit + family.forward(wide))

    def _weights(
        self, agents: list[int], local: list[Array], shared: list[Array], coupled: Array
    ) -> dict[str, list[int]]:
        pairs = zip(local, shared, strict=True)
        rows = np.array([[float(np.linalg.norm(k)), float(np.linalg.norm(d))] for k, d in pairs])
        gathered = self.runtime.gather(rows)
        top = max(float(gathered.max(initial=0.0)), float(np.linalg.norm(coupled)))
        return {
            "coupled": [0] if np.linalg.norm(coupled) > 1e-6 * top else [],
            "C": [int(i) for i in np.flatnonzero(gathered[:, 0] > 1e-6 * top)],
            "D": [int(i) for i in np.flatnonzero(gathered[:, 1] > 1e-6 * top)],
        }


def _dots(prices: list[Array], sides: list[Array]) -> list[float]:
    return [float(price @ side) for price, side in zip(prices, sides, strict=True)]
