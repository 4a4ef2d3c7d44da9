"""Contradictions seen at the closest point of a run, where nobody knows all equations."""

from __future__ import annotations

import numpy as np

from ccmac.certificates.infeasibility import Infeasibility, claimed, described
from ccmac.certificates.prices import CONFLICT, Recovery, split
from ccmac.inputs import Array
from ccmac.linalg.lanczos import agreed_dots
from ccmac.runtime.space import lengths, piece_sums, row_dots


class ClosestPoint:
    """Proves contradictions among the equations of a :class:`Recovery`."""

    def __init__(self, recovery: Recovery) -> None:
        self.user, self.problem, self.runtime = recovery, recovery.problem, recovery.runtime

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
