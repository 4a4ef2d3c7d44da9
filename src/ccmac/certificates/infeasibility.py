"""Certificates of infeasibility: lambda with K'lambda = 0 and lambda'v != 0, block by block.

Built from the user's own equations at a point that satisfies them as well as possible, and put into
words that name the conflicting blocks.
"""

from __future__ import annotations

import numpy as np

from ccmac.certificates.error_bound import Infeasibility
from ccmac.certificates.prices import CONFLICT, Recovery, split
from ccmac.inputs import Array
from ccmac.linalg.lanczos import agreed_dots
from ccmac.runtime.space import piece_sums, row_dots


class Conflicts:
    """Finds and proves contradictions among the equations of a :class:`Recovery`."""

    def __init__(self, recovery: Recovery) -> None:
        self.user = recovery
        self.problem, self.runtime = recovery.problem, recovery.runtime

    def own(self) -> Infeasibility | None:
        """An agent whose own C_i x = c_i or D_i z = e_i cannot hold; one reduction."""
        agents = list(self.problem.agents)
        rows = np.zeros((len(agents), 2))
        for column, found in enumerate((self.user.local.conflict, self.user.shared.conflict)):
            for agent, gap in found:
                rows[agents.index(agent), column] = gap
        gaps = self.runtime.gather(rows, riding=True)  # with the agents' other declarations
        for column, block in enumerate("CD"):
            if gaps[:, column].any():
                agent = int(np.argmax(gaps[:, column]))
                right = "c" if block == "C" else "e"
                return Infeasibility(
                    f"infeasible: agent {agent}'s own equations {block} contradict each other "
                    f"(right-hand side {right} is {gaps[agent, column]:.3g} away from the range); "
                    f"correct {block} or {right} of agent {agent}",
                    np.zeros(self.problem.m),
                    value=float(gaps[agent, column]),
                )
        return self._empty_conflict()

    def _empty_conflict(self) -> Infeasibility | None:
        """A = B = 0 leaves the coupled equation 0 = sum b."""
        if not (self.user.coupling.empty and self.problem.m):
            return None
        mean = self.runtime.average(self.user.b)
        total = self.problem.n * np.sqrt(agreed_dots(self.runtime, mean, mean)[0])
        if total <= CONFLICT * max(1.0, self.user.scale()):
            return None
        return Infeasibility(
            f"infeasible: no agent has A or B, but the b_i add up to {total:.3g}, not to zero; "
            "correct the b_i or give the coupled equation its A and B",
            mean[0],
            value=float(total**2 / self.problem.n),
        )

    def at(self, z: Array, price: Array, norms: dict[str, float]) -> Infeasibility | None:
        """The certificate at a least-squares point (repaired as far as it goes), or None.

        ``price`` is q(S) times the coupled misfit there: lambda = (price, kappa, delta, nu) has
        K'lambda = 0 and lambda'v = -(sum of squared misfits in the normalizers' metric) < 0.
        """
        size = self.user.scale()
        violation = max(norms["coupled"], norms["shared"])
        if violation <= CONFLICT * max(1.0, size):
            return None
        runtime = self.runtime
        zeros_x = np.zeros(self.user.space.x_size)
        zeros_z = np.zeros((self.user.space.count, self.problem.q))
        gx, gz = zeros_x, zeros_z
        if not self.user.coupling.empty:
            gx, gz = self.user.coupling.adjoint(price)
        local = self.user.local.multipliers(gx)
        shared = [np.zeros(k) for k in self.problem.r.values()]
        if not self.user.shared.empty:
            mean = runtime.average(z)
            shared = self._shared_conflict(mean, gz)
        total_x = gx + self.user.C.adjoint(np.concatenate(local)) if not self.user.C.empty else gx
        total_z = gz + self.user.D.adjoint(np.concatenate(shared)).reshape(gz.shape)
        mean = runtime.average(total_z)
        wide = (len(self.problem.agents), price.shape[1])
        values = np.stack(
            [
                piece_sums(total_x**2, self.user.space.d),
                np.sum(np.broadcast_to(mean, total_z.shape) ** 2, axis=1),
                row_dots(self.user.b[:, : price.shape[1]], np.broadcast_to(price, wide)),
                [
                    float(k @ c)
                    for k, c in zip(local, split(self.user.c, self.user.C.rows), strict=True)
                ],
                [
                    float(k @ e)
                    for k, e in zip(shared, split(self.user.e, self.user.D.rows), strict=True)
                ],
            ],
            axis=1,
        )
        defect_x, defect_z, *parts = runtime.total(values, riding=True)
        coupled = np.zeros(self.problem.m)
        coupled[: price.shape[1]] = price[0]
        agents = list(self.problem.agents)
        weights = self._weights(agents, local, shared, coupled)
        return Infeasibility(
            _describe(weights, norms),
            coupled,
            {i: v for i, v in zip(agents, local, strict=True) if v.size},
            {i: v for i, v in zip(agents, shared, strict=True) if v.size},
            float(np.sqrt(defect_x + defect_z)),
            float(sum(parts)),
        )

    def _shared_conflict(self, mean: Array, gz: Array) -> list[Array]:
        """delta with mean(D'delta) = -mean(B'y): the misfit of D plus what balances the price."""
        runtime, family = self.runtime, self.user.shared.family
        count = len(self.problem.agents)
        rows = np.ascontiguousarray(np.broadcast_to(mean, (count, self.problem.q)))
        misfit = family.forward(rows) - self.user.shared.right
        back = family.adjoint(misfit).reshape(count, self.problem.q)
        target = runtime.average(gz + back)
        direction = self.user.solve_shared(-target, self.user.size(gz) + self.user.size(back))
        wide = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
        return self.user.shared.in_user_rows(misfit + family.forward(wide))

    def _weights(
        self, agents: list[int], local: list[Array], shared: list[Array], coupled: Array
    ) -> dict[str, list[int]]:
        rows = np.array(
            [
                [float(np.linalg.norm(k)), float(np.linalg.norm(d))]
                for k, d in zip(local, shared, strict=True)
            ]
        )
        gathered = self.runtime.gather(rows)
        top = max(float(gathered.max(initial=0.0)), float(np.linalg.norm(coupled)), 1e-300)
        return {
            "coupled": [0] if np.linalg.norm(coupled) > 1e-6 * top else [],
            "C": [int(i) for i in np.flatnonzero(gathered[:, 0] > 1e-6 * top)],
            "D": [int(i) for i in np.flatnonzero(gathered[:, 1] > 1e-6 * top)],
        }


def _describe(weights: dict[str, list[int]], norms: dict[str, float]) -> str:
    parts = []
    if weights["coupled"]:
        parts.append("the coupled equation sum(A x + B z - b) = 0")
    for block, text in (("C", "local equations C"), ("D", "shared equations D")):
        if weights[block]:
            shown = ", ".join(map(str, weights[block][:6])) + (
                ", ..." if len(weights[block]) > 6 else ""
            )
            parts.append(f"the {text} of agents {shown}")
    worst = max(("coupled", "shared"), key=lambda k: norms[k])
    return (
        f"infeasible: {' and '.join(parts) or 'the equations'} cannot hold together "
        f"({worst} violation {norms[worst]:.3g} at the closest point); "
        "correct the right-hand sides or drop one of these blocks"
    )
