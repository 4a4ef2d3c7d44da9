"""h(v) = min_b l(v + 1 b'): a loss whose intercept, one number a column of scores, is fitted.

h is convex, as a minimum over b of a jointly convex function, and by the envelope theorem its
gradient is that of l at v + 1 b', b the minimiser; its columns sum to zero. L is at most that of l
and mu = 0, since h(v + 1 t') = h(v). Whoever knows the scores can fit the intercept alone, so that
it needs no message and no penalty. Cost: a few gradients (or proximal maps) of l.

The prox is u = prox_l(v + 1 b') - 1 b' where b minimises the Moreau envelope of l at v + 1 b': a
scalar root, the slope (v + b - prox_l(v + b)) / step summed over the entries. A hinge loss may be
one of scores Mv + 1 b: it is polyhedral, with b among its slacks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.symmetric import weighted_gram
from ccmac.objectives.base import Function, Step, rise
from ccmac.objectives.loss import Kinked, Loss, MarginLoss, root
from ccmac.objectives.multinomial import Multinomial
from ccmac.objectives.polyhedral import Polyhedral


class Intercept(Function):
    """min_b loss(v + 1 b') for an elementwise loss of v itself, or a Multinomial.

    Of Hinge(M, ...) it is min_b over the scores Mv + 1 b.

    Parameters
    ----------
    loss : Function
        An elementwise loss of v itself, or a Multinomial.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Intercept(ccmac.objectives.SquaredDistance(1.0, [1.0, -2.0]))
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    0.0
    """

    arguments = ("loss",)

    def __init__(self, loss: Any) -> None:
        elementwise = isinstance(loss, Loss) and loss.M is None and not loss.ridge
        squared = isinstance(loss, Function) and "quadratic" in loss.capabilities
        elementwise = elementwise or (squared and loss.coordinatewise)
        hinge = isinstance(loss, Kinked) and not loss.ridge
        if not (elementwise or hinge or isinstance(loss, Multinomial)):
            raise InputError(
                f"Intercept: takes Huber, Logistic (without M and ridge), Hinge, Pinball "
                f"(without ridge), squared single entries or Multinomial, not {type(loss).__name__}"
            )
        self.loss: Function = loss
        self.size = loss.size
        self.each: Function = loss  # the loss of scores
        if hinge and loss.M is not None:
            self.each = loss.over(None)
        self.convex = loss.convex
        self.concordance = loss.concordance
        self.extended = loss.extended
        smooth = "gradient" in loss.capabilities
        self.capabilities = frozenset(
            ({"gradient"} if smooth else set())
            | ({"prox"} if elementwise else set())
            | ({"polyhedral"} if hinge else set())
        )
        self._check_bounded()

    def _check_bounded(self) -> None:
        """With one class alone the intercept would run away."""
        loss = self.loss
        if isinstance(loss, MarginLoss | Multinomial):
            assert loss.y is not None
            used = np.broadcast_to(loss.weight, loss.y.shape) > 0
            wanted = loss.classes if isinstance(loss, Multinomial) else 2
            if len(np.unique(loss.y[used])) < wanted:
                raise InputError(
                    "Intercept: some class has no row of positive weight; "
                    "the intercept would be infinite"
                )

    def constants(self, size: int) -> tuple[float, float]:
        """(L of the loss at most, 0)."""
        return self.loss.constants(size)[0], 0.0

    def offset(self, v: Array) -> Array:
        """b, one entry a column of scores (of sum zero where there are several)."""
        if isinstance(self.loss, Multinomial):
            return class_offsets(self.loss, v)
        return np.array([self._best(self.scores(v), 0.0)])

    def scores(self, v: Array) -> Array:
        """The scores without intercept: v, or Mv."""
        M = self.loss.M if isinstance(self.loss, Kinked) else None
        return v if M is None else np.asarray(M @ v)

    def _best(self, v: Array, step: Step) -> float:
        """The b that minimises the Moreau envelope at v + b (``step`` 0: the loss itself)."""

        def slope(b: float) -> float:
            if np.all(step == 0):
                return float(self.each.gradient_at(v + b).sum())
            return float(np.sum((v + b - self.loss.prox_at(v + b, step)) / step))

        if "quadratic" in self.loss.capabilities:  # the slope is a straight line
            bend = self.loss.quadratic_at(len(v))[0].diagonal()
            rise = float(np.sum(bend / (1.0 + step * bend)))
            return -slope(0.0) / rise if rise > 0 else 0.0
        return root(slope)

    def fitted(self, v: Array) -> Array:
        """The scores with the best intercept."""
        b = self.offset(v)
        return np.asarray((self.scores(v).reshape(-1, len(b)) + b).ravel())

    def value_at(self, v: Array) -> float:
        return self.each.value_at(self.fitted(v))

    def polyhedral_at(self, size: int) -> Polyhedral:
        """The hinges with b as a free slack."""
        if not isinstance(self.loss, Kinked):
            return super().polyhedral_at(size)
        M = sp.eye_array(size, format="csr") if self.loss.M is None else self.loss.M
        return Polyhedral.zero(size).with_terms(self.loss.epigraph(M, intercept=True))

    def gradient_at(self, v: Array) -> Array:
        """grad loss at the fitted scores."""
        if "gradient" not in self.capabilities:
            return super().gradient_at(v)
        if v.dtype != np.longdouble:
            return self.loss.gradient_at(self.fitted(v))
        # in the long format b takes Newton's steps from the one in doubles
        b = self.offset(v.astype(np.float64)).astype(np.longdouble)
        for _ in range(3):
            u: Any = (v.reshape(-1, len(b)) + b).ravel()
            gradient = self.loss.gradient_at(u)
            slope = gradient.reshape(-1, len(b)).sum(axis=0).astype(np.float64)
            b = b - np.linalg.lstsq(self._bend(u.astype(np.float64)), slope, rcond=None)[0]
        return gradient

    def _bend(self, u: Array) -> Array:
        """The second derivative in b."""
        if isinstance(self.loss, Multinomial):
            return self.loss.class_curvature(softmax(u.reshape(-1, self.loss.classes), axis=1))
        return np.array([[rise(self.loss.gradient_at, u).sum()]])

    def prox_at(self, v: Array, step: Step) -> Array:
        """See the module."""
        if "prox" not in self.capabilities:
            return super().prox_at(v, step)
        b = self._best(v, step)
        return np.asarray(self.loss.prox_at(v + b, step) - b)

    def mean_weights(self, v: Array) -> tuple[Array, float]:
        bend = rise(self.loss.gradient_at, self.fitted(v))
        total = float(bend.sum())
        return (bend / total if total > 0 else bend), total

    @property
    def has_hessian(self) -> bool:
        """Of smooth losses that act entry by entry."""
        return "gradient" in self.capabilities and self.loss.coordinatewise

    def hessian_at(self, v: Array) -> Any:
        """diag(w) - w w' / sum w with w the loss's second derivatives: b follows v."""
        weights, total = self.mean_weights(v)
        return total * (np.diag(weights) - np.outer(weights, weights))

    has_gram = True

    def gram(self, v: Array, E: Array) -> Array:
        """The offset b follows v: the Schur complement of its own second derivative."""
        u = self.fitted(v)
        if isinstance(self.loss, Multinomial):
            inner, cross, own = self.loss.gram(u, E), *self.loss.offset_curvature(u, E)
            values, basis = np.linalg.eigh(own)
            weights = np.broadcast_to(self.loss.weight, self.loss.y.shape)
            seen = values > 1e-12 * float(weights.sum())  # relative to what cross is summed from
            follows = (cross @ basis[:, seen]) / np.sqrt(values[seen])
            return np.asarray(inner - follows @ follows.T)
        bend = rise(self.loss.gradient_at, u)
        mixed = E @ bend
        total = float(bend.sum())
        inner = weighted_gram(E, bend)
        return np.asarray(inner - np.outer(mixed, mixed) / total if total > 0 else inner)

    def lipschitz_at(self, size: int) -> float:
        """That of the loss; none where there is no gradient."""
        return self.loss.lipschitz_at(size) if "gradient" in self.capabilities else math.inf


def class_offsets(loss: Multinomial, v: Array) -> Array:
    """Newton's method on the K offsets, at temperatures that fall to 1: scores far apart leave
    no curvature otherwise. Third derivatives are at most sqrt(2) times second ones, which says how
    far a step goes that lowers the loss.
    """
    scores = v.reshape(-1, loss.classes)
    b = np.zeros(loss.classes)
    weights = np.broadcast_to(loss.weight, len(loss.y))
    total = float(weights.sum())
    own = np.bincount(loss.y.astype(np.int64), weights, loss.classes)  # of each class
    # scores within a range of 16 need no other temperature
    heat = max(1.0, float(np.ptp(scores)) / 16.0)
    for _ in range(500):
        p = softmax((scores + b) / heat, axis=1)
        slope = loss.slopes(p).sum(axis=0)
        # in a tenth of every class's weight the slope is flat: time to cool
        if heat > 1.0 and np.all(np.abs(slope) <= 0.1 * own):
            heat = max(1.0, 0.5 * heat)
            continue
        if heat == 1.0 and np.abs(slope).max() <= 1e-14 * total:
            break
        # a little curvature that is always there
        H = loss.class_curvature(p) + 1e-30 * total * np.eye(loss.classes)
        H += float(np.trace(H)) / loss.classes**2  # the direction (1, ..., 1) is flat
        move = np.linalg.lstsq(H, slope, rcond=None)[0]
        far = math.sqrt(2.0) * float(np.linalg.norm(move))
        b = b - heat * (math.log1p(far) / far if far > 0 else 1.0) * move
    return np.asarray(b - b.mean())
