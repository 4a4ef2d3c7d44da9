"""Finds contradictions among the equations, and proves them in the user's own blocks.

Inside an agent or among equations that all know; what is claimed is a certificate of
:mod:`ccmac.certificates.infeasibility`. Multipliers are sharpened until K'lambda is their rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ccmac.certificates.closest import FromSums
from ccmac.certificates.infeasibility import (
    PLAIN,
    VISIBLE,
    Infeasibility,
    described,
    doubted,
    proves,
)
from ccmac.certificates.multipliers import Recovery
from ccmac.certificates.own_rows import PASSES, SEEN, contradiction, defect_of, of_rows, sharpened
from ccmac.certificates.proof import unmet
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, Long, dot, norm, product, rounded_sum
from ccmac.linalg.tolerances import EPS
from ccmac.workspace import Workspace
from ccmac.workspace.gram import Gram
from ccmac.workspace.reduced import Reduced

TURNED = 1e-11  # share below which it may come from the angles of the kernels


@dataclass(frozen=True)
class _Combined:
    """lambda for all equations: coupled, scaled shared and local multipliers, ||local|| by agents,
    lambda'v (towards zero), less what right-hand sides may be off by, ||K'lambda|| at most, and the
    size of the closest point.
    """

    price: Array
    shared: Array
    local: list[Array]
    weights: Array
    value: float
    sure: float
    defect: float
    size: float


def _outside(reduced: Reduced) -> Iterator[Array]:
    """What of the right-hand sides lies outside the range, in scaled rows, if not by rounding.

    Then what does of the D_i alone: angles of the C_i, which turn the rest, hide nothing there.
    """
    outside = reduced.U_null @ (reduced.U_null.T @ reduced.right)
    if _stands_out(reduced, norm(outside), min(reduced.angle, TURNED)):
        yield outside
    elif reduced.angle <= SEEN * math.sqrt(len(outside)):
        return
    seen = contradiction(reduced.D, reduced.e, reduced.shared)
    if seen is not None:
        yield np.concatenate([np.zeros(len(reduced.unit)), seen.value * seen.price])


def _stands_out(reduced: Reduced, misfit: float, turned: float = 0.0) -> bool:
    """Whether it is PLAIN, or more than rounding of right-hand sides and ``turned``, as shares."""
    rounding = SEEN * math.sqrt(len(reduced.right))
    right = norm(reduced.right)
    return misfit > min((rounding + turned) * right, PLAIN)


def _local(reduced: Reduced, price: Array | Long, passes: int) -> list[Long]:
    """kappa_i that cancel A_i'price in the rows of the C_i."""
    own = zip(reduced.kernels, reduced.A, reduced.C, strict=True)
    return [sharpened(kernel.space, C, product(A.T, price), passes) for kernel, A, C in own]


class Conflicts:
    """Finds and proves contradictions among the equations of a workspace."""

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.problem = work.problem
        self.runtime = work.runtime
        self.doubt = ""  # why no bound may be believed, where nothing was claimed

    def early(self) -> Infeasibility | None:
        """What shows before the first step."""
        found = self.own()
        reduced = self.work.gather_constraints()
        if found is None and reduced is not None:
            found = self.together(reduced)
        elif found is None and (told := self.work.gather_sums(small=True)) is not None:
            found = self._from_sums(told)
        return self._heeded(found)

    def late(self) -> Infeasibility | None:
        """Once all messages have travelled: what the angles of the kernels may have hidden."""
        reduced = self.work.constraints
        if self.doubt:
            return None
        if isinstance(reduced, Gram):
            return self._heeded(self._from_sums(reduced))
        if reduced is None or not reduced.angle or not reduced.U_null.shape[1]:
            return None
        outside = reduced.U_null @ (reduced.U_null.T @ reduced.right)
        return self._heeded(self._closest(reduced)) if _stands_out(reduced, norm(outside)) else None

    def _closest(self, reduced: Reduced) -> Infeasibility | None:
        """Along the misfit of all equations, those of the C_i included."""
        outside, length = unmet(self.work, reduced, PASSES)
        if not _stands_out(reduced, length):
            return None
        return self._along(reduced, outside)

    def _from_sums(self, gram: Gram) -> Infeasibility | None:
        """Where rows are masked."""
        if not _stands_out(gram, norm(gram.U_null.T @ gram.right)):
            return None
        seen, found = FromSums(Recovery(self.work), gram).found()
        if found is None:
            self._doubt("all agents together", seen.value, seen.defect)
        return found

    def _heeded(self, found: Infeasibility | None) -> Infeasibility | None:
        if self.doubt and self.doubt not in self.work.doubts:
            self.work.doubts.append(self.doubt)
        return found

    def own(self) -> Infeasibility | None:
        """An agent whose own C_i x = c_i or D_i z = e_i cannot hold; one averaging if any.

        Every agent says value and defect of a contradiction, or 0 and the condition of its rows.
        It carries the equations too where all may know them.
        """
        problem = self.problem
        found = {}
        if not {"C", "D"} & problem.present or self.work.agreed.get("independent"):
            return None
        rows = np.zeros((len(problem.agents), 5))
        families = self.work.local.spaces, self.work.shared.spaces
        for k, (i, agent) in enumerate(problem.agents.items()):
            for column, (block, side) in enumerate(((agent.C, agent.c), (agent.D, agent.e))):
                if block is None or not families[column]:
                    continue
                space = families[column][k]
                if space.rank == block.shape[0]:
                    rows[k, 2 * column + 1] = space.condition
                    continue
                rows[k, 4] = 1.0
                right = np.zeros(block.shape[0]) if side is None else side
                value, defect, seen = of_rows(block, right, space)
                rows[k, 2 * column : 2 * column + 2] = value, defect
                if seen is not None:
                    found[i, column] = seen
        told = self.runtime.ride(rows, whole=True)
        self.work.gather_constraints()  # the equations travel along
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
                    np.zeros(problem.m),
                    price if block == "C" else {},
                    price if block == "D" else {},
                    float(seen_by_all[agent_index, 2 * column + 1]),
                    float(values[agent_index]),
                )
        return None

    def together(self, reduced: Reduced) -> Infeasibility | None:
        """Among all equations, where everybody knows them: no rounds unless there is one."""
        if not reduced.U_null.shape[1]:
            return None
        tried = (self._along(reduced, outside) for outside in _outside(reduced))
        found = next((found for found in tried if found is not None), None)
        return self._closest(reduced) if found is None and self.doubt and reduced.angle else found

    def _along(self, reduced: Reduced, outside: Array) -> Infeasibility | None:
        """The certificate with multipliers along ``outside``, if it proves something.

        They are sharpened where that is not enough.
        """
        scaled: Long = (outside / np.linalg.norm(outside)).astype(np.longdouble)
        seen = self._weighed(reduced, scaled, 1)
        proved = proves(seen.sure, seen.defect, seen.size)
        if not proved:
            for _ in range(PASSES):
                scaled = self._sharpened(reduced, scaled)
            seen = self._weighed(reduced, scaled, PASSES)
            proved = proves(seen.sure, seen.defect, seen.size)
        if proved:
            return self._certificate(reduced, outside, seen)
        if doubted(seen.sure, seen.defect, seen.size):
            self._doubt("all agents together", seen.value, seen.defect)
        return None

    def _weighed(self, reduced: Reduced, scaled: Long, passes: int) -> _Combined:
        """Multipliers of all rows from those of the scaled ones, and what they prove."""
        price, shared = (v.astype(np.float64) for v in reduced.prices(scaled))
        local = [v.astype(np.float64) for v in _local(reduced, price, passes)]
        rows = [self._share(reduced, k, price, kappa) for k, kappa in enumerate(local)]
        gathered = self.runtime.gather(np.array(rows))
        off_z = defect_of([(reduced.Bbar, price), (reduced.D, shared)])
        off_z += self.problem.n * EPS_LONG * norm(reduced.size_B.T @ np.abs(price))
        value = rounded_sum([*gathered[:, :2].flat, *dot(reduced.e, shared)]) * (1 - 4 * EPS)
        terms = float(np.add.reduce(gathered[:, 3]) + np.abs(reduced.e) @ np.abs(shared))
        defect = math.sqrt(float(np.add.reduce(gathered[:, 2])) + off_z * off_z)
        inside = float(np.linalg.norm((reduced.U.T @ reduced.right) / reduced.sigma))
        size = math.hypot(inside, math.sqrt(float(np.add.reduce(gathered[:, 5]))))
        sure = abs(value) - 4 * EPS * terms
        return _Combined(price, shared, local, gathered[:, 4], value, sure, defect, size)

    def _sharpened(self, reduced: Reduced, scaled: Long) -> Long:
        """Multipliers of the scaled rows less what K' does not cancel of them: one averaging."""
        price, shared = reduced.prices(scaled)
        rows = []
        for A, C, kernel, kappa in zip(
            reduced.A, reduced.C, reduced.kernels, _local(reduced, price, PASSES), strict=True
        ):
            left = (product(A.T, price) + product(C.T, kappa)).astype(np.float64)
            rows.append(A @ (kernel.basis @ (kernel.basis.T @ left)))
        on_z = product(reduced.Bbar.T, price) + product(reduced.D.T, shared)
        coupled = np.add.reduce(self.runtime.gather(np.stack(rows))) + reduced.Bbar @ on_z
        image = np.concatenate([reduced.unit * coupled, reduced.D @ on_z]).astype(np.float64)
        return scaled - reduced.inverse_gram(image)

    def _certificate(self, reduced: Reduced, outside: Array, seen: _Combined) -> Infeasibility:
        """In words and in the user's rows."""
        price = seen.price
        by_agent = reduced.by_agent(seen.shared)
        weights = {
            "coupled": [0] if norm(price / reduced.unit) > VISIBLE else [],
            "C": [int(i) for i in np.flatnonzero(seen.weights > VISIBLE)],
            "D": [i for i, v in enumerate(by_agent) if np.linalg.norm(v) > VISIBLE],
        }
        norms = {
            "coupled": norm(outside[: len(price)] / reduced.unit),
            "shared": norm(outside[len(price) :] / reduced.unit_D),
        }
        agents = list(self.problem.agents)
        message = described(weights, norms)
        if self.work.coupling.empty and weights["coupled"]:
            message = (
                "infeasible: no agent has A or B, but the b_i add up to "
                f"{float(np.linalg.norm(reduced.beta)):.3g}, not to zero; correct the b_i or give "
                "the coupled equation its A and B"
            )
        return Infeasibility(
            message,
            price,
            {i: v for i, v in zip(agents, seen.local, strict=True) if v.size},
            {i: by_agent[i] for i in agents if by_agent[i].size},
            seen.defect,
            seen.value,
        )

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
        value = dot(np.concatenate([b, c]), np.concatenate([price, kappa]))
        terms = float(np.abs(b) @ np.abs(price) + np.abs(c) @ np.abs(kappa))
        off = defect_of([(reduced.A[k], price), (reduced.C[k], kappa)])
        point = reduced.kernels[k].point
        return [*value, off * off, terms, float(np.linalg.norm(kappa)), float(point @ point)]
