"""Contradictions where nobody knows all equations: at the closest point of a run, or from sums.

What multipliers prove is taken in the agents' own blocks (:mod:`ccmac.certificates.weighing`).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ccmac.certificates.infeasibility import Infeasibility, claimed, proves
from ccmac.certificates.multipliers import CONFLICT, Recovery
from ccmac.certificates.realized import Certifier
from ccmac.certificates.weighing import Lambda, Weighed, Weighing
from ccmac.inputs import Array
from ccmac.linalg.blocks import powers
from ccmac.linalg.conjugate import conjugate_residuals
from ccmac.linalg.extended import halves, norm, summed
from ccmac.realizations.base import Realized
from ccmac.runtime.notes import heard_by_all
from ccmac.runtime.space import lengths, row_dots
from ccmac.workspace import Workspace
from ccmac.workspace.gram import Gram

PASSES = 2  # of sharpening: each gains the digits that squares keep, or LEFT
LEFT = 1e-6  # of K'lambda, where it is cancelled
CANCELLING = 500  # steps, at most


UNMET = (
    "the equations stay violated by {:.2g} at the closest point that was found: they may "
    "contradict each other, which is not proved; what is said of the error is an estimate, for the "
    "nearest right-hand sides that agree"
)


def diagnosed(
    work: Workspace, recovery: Recovery, realized: Realized, w: Array, norms: dict[str, float]
) -> Infeasibility | None:
    """A conflict, if the equations stay violated however well w is repaired; a doubt where that is
    no proof. ``norms`` are the violations at w.
    """
    allowed = CONFLICT * max(1.0, recovery.scale())
    price = np.zeros((1, recovery.coupling.width))
    if max(norms["coupled"], norms["shared"]) > allowed and not realized.system.empty:
        w = Certifier(realized).repair(w)
        norms, _, _ = recovery.violations(realized.space.x(w), realized.copies(w))
        price = realized.system.common_price(realized.system.residual(w)[1])
    violation = max(norms["coupled"], norms["shared"])
    if violation <= allowed:
        return None
    found = ClosestPoint(recovery).at(realized, w, price, norms)
    if found is None:
        work.doubts.append(UNMET.format(violation))
    return found


class ClosestPoint:
    """Proves contradictions among the equations of a :class:`Recovery`."""

    def __init__(self, recovery: Recovery) -> None:
        self.user = recovery
        self.problem = recovery.problem
        self.runtime = recovery.runtime
        self.own = Weighing(recovery)

    def at(
        self, realized: Realized, w: Array, price: Array, norms: dict[str, float]
    ) -> Infeasibility | None:
        """The certificate at a least-squares point w (repaired as far as it goes), or None.

        ``price`` is q(S) times the coupled misfit there: lambda = (price, kappa, delta, nu) has
        K'lambda = 0 and lambda'v = -(sum of squared misfits in the normalizers' metric) < 0, but
        for rounding, which is beside the size of the right-hand sides and not of the misfit: what
        it leaves of K'lambda is cancelled where that would hide a contradiction.
        """
        z = realized.copies(w)
        n = self.problem.n
        coupled = np.zeros(self.problem.m)
        coupled[: price.shape[1]] = price[0]
        shared = [np.zeros(k) for k in self.problem.r.values()]
        if not self.user.shared.empty:
            gz = np.zeros((len(z), self.problem.q))
            if not self.user.coupling.empty:
                gz = self.user.coupling.adjoint(price)[1]
            shared = self._shared_conflict(self.runtime.average(z), gz)
        squares = [
            float(v @ v + copy @ copy / n)
            for v, copy in zip((realized.space.x_of(w, k) for k in range(len(z))), z, strict=True)
        ]
        prices = Lambda(coupled, self.own.local(coupled), shared)
        for passes in range(PASSES + 1):
            seen = self.own.weighed(prices, squares)
            if _dependent(seen) and claimed(seen.sure, seen.defect, seen.size):
                return self.own.certificate(prices, seen, norms)
            if passes < PASSES and seen.length > 0:
                prices = self._cancelled(realized, prices, seen)
        return None

    def _cancelled(self, realized: Realized, prices: Lambda, seen: Weighed) -> Lambda:
        """Multipliers of length one less what conjugate residuals find of them in Range K'.

        Of v = K'lambda they leave v + K'mu; the coupled part of mu is told, the shared one follows.
        Cost: two averagings, CANCELLING steps at most, and those of :meth:`Recovery.solve_shared`.
        """
        space = realized.space
        system = realized.system
        width = self.user.coupling.width
        coupled = prices.coupled / seen.length
        shared = [v / seen.length for v in prices.shared]
        if width and not system.empty and seen.defect > 0:
            v = space.zeros()  # brings v to length one
            unit = seen.length / seen.defect
            for k, kappa in enumerate(self.own.local(coupled)):
                space.x_of(v, k)[...] = unit * self.own.on_x(k, coupled, kappa)[0]
            space.z(v)[...] = unit * realized.s * self._on_z(coupled, shared) / self.problem.n
            enough = partial(_used_up, LEFT * system.interval.low)
            found = conjugate_residuals(system.homogeneous(), v, enough, CANCELLING)
            coupled[:width] += system.common_price(found.price)[0, :width] / unit
        if not self.user.shared.empty:
            left = self._on_z(coupled, shared)
            direction = self.user.solve_shared(-left / self.problem.n, norm(left))
            more = self.user.shared.multipliers(direction)
            shared = [own + rest for own, rest in zip(shared, more, strict=True)]
        return Lambda(coupled, self.own.local(coupled), shared)

    def _on_z(self, coupled: Array, shared: list[Array]) -> Array:
        """sum_i B_i'price + D_i'delta_i, in extended precision: one averaging."""
        rows = [halves(self.own.on_z(k, coupled, delta)[0]) for k, delta in enumerate(shared)]
        return summed(heard_by_all(self.runtime, np.stack(rows))).astype(np.float64)[None]

    def _shared_conflict(self, mean: Array, gz: Array) -> list[Array]:
        """delta with mean(D'delta) = -mean(B'y): the misfit of D plus what balances the price."""
        runtime = self.runtime
        family = self.user.shared.family
        count = len(self.problem.agents)
        rows = np.ascontiguousarray(np.broadcast_to(mean, (count, self.problem.q)))
        misfit = family.forward(rows) - self.user.shared.right
        back = family.adjoint(misfit).reshape(count, self.problem.q)
        sizes = runtime.ride(np.stack([row_dots(gz, gz), row_dots(back, back)], axis=1))
        target = runtime.average(gz + back)
        direction = self.user.solve_shared(-target, sum(lengths(sizes)))
        wide = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
        return self.user.shared.in_user_rows(misfit + family.forward(wide))


def _dependent(seen: Weighed) -> bool:
    """Whether nothing but rounding is left of K'lambda: where there is more, rows are not dependent
    but nearly so, and some large point may meet them.
    """
    return seen.defect <= seen.rounding


def _used_up(least: float, left: float, normal: float) -> bool:
    """Whether conjugate residuals have little left in Range K', by ||G v||."""
    return normal <= least


class FromSums(ClosestPoint):
    """The same among equations of which all know the squares, and that they do not agree.

    The least-squares point (y, z) of the rows that a :class:`Gram` has leaves a misfit of the
    coupled rows and z, with which every agent finds the misfit of its own D_i. Both are multipliers
    with K'lambda = 0 but for rounding; what is left of it is cancelled as in
    :mod:`ccmac.certificates.conflicts`. Cost: PASSES + 2 averagings, and one for words.
    """

    def __init__(self, recovery: Recovery, gram: Gram) -> None:
        super().__init__(recovery)
        self.gram = gram

    def found(self) -> tuple[Weighed, Infeasibility | None]:
        """What the multipliers show; a certificate where that is enough."""
        gram = self.gram
        outside = gram.U_null @ (gram.U_null.T @ gram.right)
        price, shared = gram.prices(gram.inverse_gram(gram.right))
        z = gram.Bbar.astype(np.float64).T @ price + gram.D.T @ shared
        coupled = gram.unit * outside[: self.problem.m]
        deltas = self._misfits(z)
        units = [powers(np.linalg.norm(D, axis=1)) for D, _ in self._hidden()]
        squares = [[float(np.sum((v / u) ** 2))] for v, u in zip(deltas, units, strict=True)]
        told = float(self.runtime.total(np.array(squares))[0])
        whole = math.sqrt(max(told, 0.0) + norm(coupled / gram.unit) ** 2)
        if not whole > 0:
            return Weighed(0.0, 0.0, math.inf, 0.0, 0.0), None
        norms = {"coupled": norm(outside[: self.problem.m] / gram.unit), "shared": math.sqrt(told)}
        coupled = coupled / whole
        deltas = [v / whole for v in deltas]
        for _ in range(PASSES):
            coupled, deltas = self._sharpened(coupled, deltas)
        prices = Lambda(coupled, self.own.local(coupled), deltas)
        points = [float(kernel.point @ kernel.point) for kernel in gram.kernels]
        seen = self.own.weighed(prices, points)
        inside = norm((gram.U.T @ gram.right) / gram.sigma)
        if not proves(seen.sure, seen.defect, math.hypot(seen.size, inside)):
            return seen, None
        return seen, self.own.certificate(prices, seen, norms)

    def _hidden(self) -> list[tuple[Array, Array]]:
        """The rows of D and e of the agents owned here."""
        none = np.zeros((0, self.problem.q)), np.zeros(0)
        return [next(iter(self.gram.hidden(k)), none) for k in range(len(self.gram.kernels))]

    def _misfits(self, z: Array) -> list[Array]:
        """e_i - D_i z, as multipliers of the rows as they are."""
        own = self._hidden()
        return [powers(np.linalg.norm(D, axis=1)) ** 2 * (e - D @ z) for D, e in own]

    def _sharpened(self, coupled: Array, deltas: list[Array]) -> tuple[Array, list[Array]]:
        """Multipliers less what K' does not cancel of them: one averaging."""
        gram = self.gram
        rows = []
        for k, (kappa, delta) in enumerate(zip(self.own.local(coupled), deltas, strict=True)):
            left = self.own.on_x(k, coupled, kappa)[0].astype(np.float64)
            N = gram.kernels[k].basis
            on_z = self.own.on_z(k, coupled, delta)[0]
            rows.append(np.concatenate([gram.A[k] @ (N @ (N.T @ left)), halves(on_z)]))
        table = heard_by_all(self.runtime, np.stack(rows))
        m = self.problem.m
        on_z = summed(table[:, m:]).astype(np.float64)
        image = np.add.reduce(table[:, :m]) + gram.Bbar.astype(np.float64) @ on_z
        scaled = gram.inverse_gram(np.concatenate([gram.unit * image, gram.D @ on_z]))
        price, shared = gram.prices(scaled)
        back = [gram.own_shared(k, shared)[0] for k in range(len(deltas))]
        return coupled - price, [v - more for v, more in zip(deltas, back, strict=True)]
