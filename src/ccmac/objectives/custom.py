"""An objective given by the user's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative, real_vector, whole
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Curvature, Function, Objective, joint
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.texts import shown

Blocks = Any
"""(u_x, u_z), or both in one concatenated array."""
NAMED: dict[str, Callable[..., Any]] = {}
CALLS = ("value", "gradient", "prox", "hessian")


def named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of your own, so that a saved :class:`Custom` may name it.

    A file holds the name alone, and loading it executes nothing: import the module that has the
    function first.

    Parameters
    ----------
    name : str
        The same in every program that saves or loads it.

    Returns
    -------
    callable
        A decorator that leaves the function as it is.

    Examples
    --------
    >>> import ccmac
    >>> @ccmac.objectives.named("plant: cost")
    ... def cost(x, z):
    ...     return float(x @ x)
    """

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        NAMED[name] = function
        return function

    return keep


@dataclass
class Rates:
    """The largest rate of change and the least curvature that pairs of gradients have shown."""

    high: float = 0.0
    low: float = math.inf

    def see(self, a: Array, at_a: Array, b: Array, at_b: Array, L: float) -> None:
        """What a pair says, with room for rounding; ``L`` is the declared smoothness."""
        with np.errstate(all="ignore"):
            apart = b - a
            change = at_b - at_a
            length = float(np.linalg.norm(apart))
            size = float(np.linalg.norm(at_a) + np.linalg.norm(at_b))
            size += L * float(np.linalg.norm(b)) if math.isfinite(L) else 0.0
            noise = 1e3 * EPS * size / length if length > 0 else math.inf
            rate = float(np.linalg.norm(change)) / length if length > 0 else math.nan
            bend = float(change @ apart) / length**2 if length > 0 else math.nan
        if math.isfinite(rate) and math.isfinite(noise):
            self.high = max(self.high, rate - noise)
            self.low = min(self.low, bend + noise)

    def refute(self, L: float, mu: float) -> str:
        """How it contradicts declared constants; empty where it does not."""
        if self.high > L * (1 + 1e-6):
            return (
                f"the gradient changes at rate {self.high:.6g}, more than the declared smoothness "
                f"{L:.6g}; declare at least that much"
            )
        reach = self.high if math.isinf(L) else L
        if self.low < mu * (1 - 1e-6) - 1e-12 * reach:
            remedy = "declare at most that" if self.low >= -1e-9 * reach else "f is not convex"
            return (
                f"curvature {self.low:.6g} was seen, less than the declared strong convexity "
                f"{mu:.6g}; {remedy}"
            )
        return ""


class Custom(Objective):
    """f(x, z) from callables, with declared constants.

    ``value(x, z)`` returns a number and ``gradient(x, z)`` the pair (grad_x, grad_z) or one
    concatenated array. ``smoothness`` is the Lipschitz constant of the whole gradient, and
    ``math.inf`` says that f is not smooth: ``gradient`` then returns a subgradient, and
    ``lipschitz`` may bound its norm. ``prox(x, z, step_x, step_z)`` is optional, and so are Hessian
    products ``hessian(x, z, v_x, v_z)`` for Newton's method. The constants are supplied:
    gradients that a run meets one after the other may refute them (:meth:`refuted`).

    Parameters
    ----------
    value : callable
        ``value(x, z)`` returns a number.
    gradient : callable or None
        ``gradient(x, z)`` returns the pair (grad_x, grad_z) or one concatenated array.
    smoothness : float
        Lipschitz constant of the whole gradient; ``math.inf`` where f is not smooth.
    strong_convexity : float
        mu, zero where f is only convex.
    prox : callable, optional
        ``prox(x, z, step_x, step_z)``.
    dim : int, optional
        The length of (x, z), for a check.
    lipschitz : float
        A bound on the norm of subgradients.
    hessian : callable, optional
        ``hessian(x, z, v_x, v_z)``, products for Newton's method.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Custom(
    ...     value=lambda x, z: float(np.cosh(x).sum()),
    ...     gradient=lambda x, z: (np.sinh(x), 0 * z),
    ...     smoothness=2.0,
    ... )
    >>> f.value(np.zeros(2), np.zeros(1))
    2.0
    """

    def __init__(
        self,
        value: Callable[[Array, Array], float],
        gradient: Callable[[Array, Array], Blocks] | None,
        smoothness: float | None = None,
        strong_convexity: float = 0.0,
        *,
        prox: Callable[[Array, Array, float, float], Blocks] | None = None,
        dim: int | None = None,
        lipschitz: float = math.inf,
        hessian: Callable[[Array, Array, Array, Array], Blocks] | None = None,
    ) -> None:
        if not callable(value):
            raise InputError("Custom, value: is not a function; give value(x, z) -> float")
        if smoothness is None:
            raise InputError(
                "Custom, smoothness: is missing; give the Lipschitz constant of the gradient, or "
                "math.inf where f is not smooth"
            )
        if gradient is None and prox is None:
            raise InputError("Custom, gradient: is missing; give gradient(x, z) or prox")
        for name, given in (("gradient", gradient), ("prox", prox), ("hessian", hessian)):
            if given is not None and not callable(given):
                raise InputError(f"Custom, {name}: is not a function; give one or leave it out")
        self._value = value
        self._last: tuple[Array, Array] | None = None
        self._rates = Rates()
        self._gradient = gradient
        self._prox = prox
        self._hessian = hessian
        self._dim = None if dim is None else whole("Custom, dim", dim)
        self.smoothness = _bound("Custom, smoothness", smoothness)
        self.strong_convexity = nonnegative("Custom, strong_convexity", strong_convexity)
        if self.strong_convexity > self.smoothness:
            raise InputError(
                f"Custom, strong_convexity: {self.strong_convexity} exceeds smoothness "
                f"{self.smoothness}; a function cannot bend more than its gradient moves"
            )
        self._lipschitz = _bound("Custom, lipschitz", lipschitz)
        oracle = "gradient" if math.isfinite(self.smoothness) else "subgradient"
        self.capabilities = frozenset(
            name
            for name, given in ((oracle, gradient is not None), ("prox", prox is not None))
            if given
        )

    def state(self) -> Mapping[str, Any]:
        """The constants, and names of functions; InputError where one is not :func:`named`."""
        state: dict[str, Any] = {
            "smoothness": self.smoothness,
            "strong_convexity": self.strong_convexity,
            "dim": self._dim,
            "lipschitz": self._lipschitz,
        }
        for call in CALLS:
            function = getattr(self, f"_{call}")
            known = [name for name, one in NAMED.items() if one is function]
            if function is not None and not known:
                raise InputError(
                    "Custom is Python code and cannot be saved; give its functions names, "
                    "@ccmac.objectives.named(...), or use an objective of the list"
                )
            state[call] = known[0] if known else None
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Custom:
        """By the names of functions that this program has imported."""
        for call in CALLS:
            if state[call] is not None and state[call] not in NAMED:
                raise InputError(
                    f"Custom, {call}: nothing here is named {shown(state[call])}; import your "
                    "module that names it, then load"
                )
        return cls(**{**state, **{call: NAMED.get(state[call]) for call in CALLS}})

    @property
    def dim(self) -> int | None:
        """Length of (x, z) as declared, else None."""
        return self._dim

    def check(self, d: int, q: int) -> None:
        """The declared ``dim`` must be d + q."""
        if self._dim is not None and self._dim != d + q:
            raise InputError(
                f"Custom acts on {self._dim} entries but (x, z) has {d + q}; make them agree"
            )

    def curvature(self, d: int, q: int) -> Curvature:
        """The declared constants."""
        return joint(self.smoothness, self.strong_convexity)

    def value(self, x: Array, z: Array) -> float:
        """The user's value."""
        return float(self._value(x, z))

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        """The user's gradient, as a pair of fresh float64 arrays."""
        if self._gradient is None:
            return super().gradient(x, z)
        found = _blocks("gradient", self._gradient(x, z), len(x), len(z))
        self._compare(np.concatenate([x, z]), np.concatenate(found))
        return found

    def _compare(self, u: Array, slope: Array) -> None:
        """This gradient and the one before."""
        before = self._last
        self._last = (u, slope)
        if before is not None and len(before[0]) == len(u):
            self._rates.see(*before, u, slope, self.smoothness)

    def refuted(self) -> str:
        """How gradients contradict the declared constants; empty where none did."""
        return self._rates.refute(self.smoothness, self.strong_convexity)

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """The user's prox, as a pair of fresh float64 arrays."""
        if self._prox is None:
            return super().prox(x, z, step_x, step_z)
        return _blocks("prox", self._prox(x, z, step_x, step_z), len(x), len(z))

    @property
    def has_hessian(self) -> bool:
        """Whether there are Hessian products."""
        return self._hessian is not None

    def hessian_product(self, x: Array, z: Array, v_x: Array, v_z: Array) -> tuple[Array, Array]:
        """The user's f''(x, z) v, as a pair of fresh float64 arrays."""
        if self._hessian is None:
            raise TypeError("Custom has no Hessian products")
        return _blocks("hessian", self._hessian(x, z, v_x, v_z), len(x), len(z))

    def hessian(self, x: Array, z: Array) -> Array:
        """f''(x, z), dense: one Hessian product a column."""
        d = len(x)
        size = len(x) + len(z)
        rows = [np.concatenate(self.hessian_product(x, z, u[:d], u[d:])) for u in np.eye(size)]
        H = np.reshape(rows, (size, size))
        return np.asarray(0.5 * (H + H.T))

    @property
    def is_polyhedral(self) -> bool:
        """Whether :meth:`polyhedral` exists: f is smooth and has Hessian products."""
        return self.has_hessian and "gradient" in self.capabilities

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """A smooth term of (x, z), for interior points."""
        return Joint(self, d).polyhedral_at(d + q)

    def lipschitz(self, d: int, q: int) -> float:
        """The declared bound on subgradients."""
        return self._lipschitz


class Joint(Function):
    """A Custom as a function of one vector: (x, z) with x of length d, or all of it x."""

    def __init__(self, custom: Custom, d: int | None = None) -> None:
        self.custom = custom
        self.size = custom.dim
        self.d = d
        self.capabilities = custom.capabilities - {"prox"}

    def constants(self, size: int) -> tuple[float, float]:
        return self.custom.smoothness, self.custom.strong_convexity

    def value_at(self, v: Array) -> float:
        return self.custom.value(v[: self.d], self._rest(v))

    def gradient_at(self, v: Array) -> Array:
        return np.concatenate(self.custom.gradient(v[: self.d], self._rest(v)))

    def lipschitz_at(self, size: int) -> float:
        return self.custom.lipschitz(size, 0)

    @property
    def has_hessian(self) -> bool:
        return self.custom.has_hessian

    def hessian_at(self, v: Array) -> Array:
        return self.custom.hessian(v[: self.d], self._rest(v))

    def _rest(self, v: Array) -> Array:
        return v[len(v) if self.d is None else self.d :]


def _bound(where: str, value: Any) -> float:
    """A number >= 0; infinity is allowed and means none."""
    unbounded = isinstance(value, float) and value == math.inf
    return math.inf if unbounded else nonnegative(where, value)


def _blocks(name: str, result: Blocks, d: int, q: int) -> tuple[Array, Array]:
    """Split what the user's function returned; copies, so that it may reuse its own buffers."""
    if isinstance(result, tuple):
        sizes = [np.size(part) for part in result]
        if sizes != [d, q]:
            raise InputError(
                f"Custom, {name}: returned blocks of {sizes} entries; x has {d} and z has {q}"
            )
        x, z = (np.array(part, dtype=np.float64).reshape(-1) for part in result)
        return x, z
    full = real_vector(f"Custom, {name}", result, infinite=True)
    if len(full) != d + q:
        raise InputError(
            f"Custom, {name}: returned {len(full)} entries but x has {d} and z has {q}; "
            "return the pair (x-block, z-block) or both in one array"
        )
    return full[:d].copy(), full[d:].copy()
