"""What every method is made of: options, a state, an iteration, and what it prepares.

A :class:`Method` is one frozen dataclass that owns its options. :meth:`Method.prepare` looks at the
workspace and gives a :class:`Prepared`: an :class:`Iteration` with a typed state, and the rule that
stops it. The driver alone loops, checks, saves and reports; an iteration starts, steps, and tells
its point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ccmac.certificates.bound import Dual, Proved
from ccmac.certificates.stopping import FIRST_CHECK, Stopping
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost, Costs
from ccmac.methods.options import check, refuse_option
from ccmac.realizations.base import Realized
from ccmac.runtime import Runtime
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace


# -- state -----------------------------------------------------------------------------------------
def vector() -> Any:
    """A field of a state that is an execution vector, laid out by the iteration's space."""
    return field(metadata={"kind": "vector"})


def rows() -> Any:
    """A field of a state with one row per owned agent, or what all know and is too much to send."""
    return field(metadata={"kind": "rows"})


def known() -> Any:
    """A field of a state that is the single row of what all know."""
    return field(metadata={"kind": "rows", "common": True})


@dataclass(frozen=True)
class State:
    """What an iteration carries from step to step, in forms that split by agent for a checkpoint.

    Fields are declared with :func:`vector`, :func:`rows` or :func:`known`; all others are numbers
    that everybody knows. A step returns a new state; it may use up the arrays of the old one, so
    the driver shows callbacks a copy.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from ccmac.methods.base import State, vector
    >>> @dataclass(frozen=True)
    ... class Point(State):
    ...     w: np.ndarray = vector()
    >>> Point(np.zeros(2)).copied().w
    array([0., 0.])
    """

    def copied(self) -> Self:
        """The same numbers in arrays of their own."""
        arrays = {
            f.name: getattr(self, f.name).copy() for f in fields(self) if "kind" in f.metadata
        }
        return replace(self, **arrays)

    def of_kind(self, kind: str) -> dict[str, Array]:
        """The arrays of one kind, by name."""
        return {
            f.name: getattr(self, f.name) for f in fields(self) if f.metadata.get("kind") == kind
        }

    def numbers(self) -> dict[str, float]:
        """Everything that is no array."""
        return {f.name: getattr(self, f.name) for f in fields(self) if "kind" not in f.metadata}

    def agreed(self, runtime: Runtime) -> Self:
        """The same, its numbers in the digest; where processes round differently, with agent 0's
        numbers and common rows: one averaging.
        """
        numbers = self.numbers()
        last = np.array([*map(float, numbers.values())])
        if not runtime.notes.led:
            runtime.notes.remember(last)
            return self
        names = [f.name for f in fields(self) if f.metadata.get("common")]
        arrays = {name: getattr(self, name) for name in names}
        parts = [*map(np.ravel, arrays.values()), last]
        ends = np.cumsum([len(part) for part in parts[:-1]], dtype=int)
        *pieces, last = np.split(runtime.common(np.concatenate(parts)), ends)
        agreed: dict[str, Any] = {
            name: np.reshape(piece, arrays[name].shape).astype(arrays[name].dtype)
            for name, piece in zip(names, pieces, strict=True)
        }
        for (name, before), value in zip(numbers.items(), last.tolist(), strict=True):
            agreed[name] = type(before)(value)
        return replace(self, **agreed)


S = TypeVar("S", bound=State)


# -- iteration -------------------------------------------------------------------------------------
class Iteration(ABC, Generic[S]):
    """One method on one prepared problem; ``space`` lays out the vectors of its state.

    Examples
    --------
    >>> from ccmac.methods import Iteration
    >>> sorted(Iteration.__abstractmethods__)
    ['cost', 'point', 'start', 'step']
    """

    space: Space
    far: bool = False  # whether points may lie anywhere, as to tell that there is no solution

    @abstractmethod
    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> S:
        """State at user variables (flat x, rows z), in arrays of its own.

        ``dual`` is K'lambda in user units and ``multiplier`` lambda's coupled part (a warm start).
        """

    @abstractmethod
    def step(self, state: S) -> S:
        """One iteration: a new state, which may use up the arrays of ``state``."""

    @abstractmethod
    def point(self, state: S) -> tuple[Array, Array]:
        """(flat x, rows of z copies) in the user's units."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Static cost of one step."""

    def proved(self, state: S) -> Proved | None:
        """What the last step's messages prove of their point, if anything."""
        return None

    def finished(self, state: S) -> bool:
        """Whether the method's own schedule is over."""
        return False

    def embedded(self, state: S, realized: Realized) -> Array:
        """The iterate as an execution vector of ``realized``."""
        return realized.embed(*self.point(state))

    def dual(self, state: S, realized: Realized) -> Dual | None:
        """The dual state at :meth:`embedded`; None for methods that keep none on ``realized``."""
        return None


# -- preparation -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Request:
    """What one solve asks for, apart from the problem and the method.

    ``x0``/``z0`` is the start in user variables (flat x, one z for all agents). ``reference`` says
    that an observer's error ends the run, so that nothing has to be proved; ``target`` is then the
    relative squared error to aim at, and ``measure`` which of the blocks (x, z) count in it.
    ``planned`` is the tolerance that plans are made for where that is not ``tol``: a resumed run
    keeps the plan, and so the scales, that its state was made with.

    Parameters
    ----------
    tol : float
        As in :func:`ccmac.solve`.
    x0, z0 : ndarray
        The start, in the user's variables.
    reference : bool
        Whether an observer's error ends the run.
    target : float
        The relative squared error to aim at then.
    measure : tuple of float
        Which of the blocks (x, z) count in it.
    costs : Costs
        Unit costs that plans are chosen by.
    seed : int
        Of random starts.
    planned : float, optional
        The tolerance that plans are made for, where it is another.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> ccmac.methods.Request(1e-6, np.zeros(2), np.zeros(1)).target
    1e-06
    """

    tol: float
    x0: Array
    z0: Array
    reference: bool = False
    target: float = 1e-6
    measure: tuple[float, float] = (1.0, 1.0)
    costs: Costs = field(default_factory=Costs)
    seed: int = 0
    planned: float | None = None

    @property
    def plan_tol(self) -> float:
        """The tolerance that plans are made for."""
        return self.tol if self.planned is None else self.planned


@dataclass(frozen=True)
class Prepared:
    """A method ready to run.

    ``stopping`` None leaves it to the run to prove the tolerance: in the user's own equations
    where these may be gathered, elsewhere on the realization ``judge``.
    ``widen`` prepares anew with wider spectral intervals after a blow-up (None: it cannot).
    ``horizon`` is the number of steps after which a schedule of the method's own is over,
    ``first_check`` the iteration at which a proof is tried first; ``proves``: the stopping rule
    proves in the user's variables by itself.

    Parameters
    ----------
    iteration : Iteration
        The steps.
    stopping : Stopping or None
        When to stop; None leaves the proof to the run.
    realization, why : str
        How the constraints are executed, and why.
    settings : dict
        What the plan chose.
    predicted : float, optional
        The number of iterations expected.
    certificates : dict
        The constants it rests on.
    judge : Realized, optional
        Where the tolerance is proved if the user's equations may not be gathered.
    widen : callable, optional
        Prepares anew with wider spectral intervals.
    horizon : int, optional
        Steps after which the method's own schedule is over.
    first_check : int
        The iteration of the first proof.
    proves : bool
        Whether the stopping rule proves in the user's variables.
    notes : tuple of str
        Warnings for the result.

    Examples
    --------
    >>> import dataclasses
    >>> from ccmac.methods import Prepared
    >>> [field.name for field in dataclasses.fields(Prepared)][:2]
    ['iteration', 'stopping']
    """

    iteration: Iteration[Any]
    stopping: Stopping | None
    realization: str
    why: str
    settings: dict[str, Any] = field(default_factory=dict)
    predicted: float | None = None
    certificates: dict[str, Any] = field(default_factory=dict)
    judge: Realized | None = None
    widen: Callable[[], Prepared] | None = None
    horizon: int | None = None
    first_check: int = FIRST_CHECK
    proves: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method(ABC):
    """A method with its options, the fields that :func:`ccmac.methods.options.option` makes.

    ``needs`` is a subset of {"smooth", "strongly convex", "quadratic", "prox"}; ``reveals`` says
    what agents send parts of.

    Examples
    --------
    >>> import ccmac
    >>> issubclass(ccmac.methods.CrossCg, ccmac.methods.Method)
    True
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    reveals: ClassVar[str] = "A_i x_i + B_i z_i - b_i and copies of z, at every step"

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Options that it does not have are refused by name."""
        known = [f.name for f in fields(cls)]
        for name in options:
            refuse_option(cls.name, name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check(self)

    def refuse_shape(self, stack: bool) -> None:
        """Refuse a problem of agents or, by default, a Stack; known before any work."""
        if stack:
            raise MethodRefused(
                f"method {self.name} knows problems of agents, not a Stack; use cross-apapc, "
                "cross-continuation or cross-sliding"
            )

    def announce(self, work: Workspace, request: Request) -> None:  # noqa: B027 (optional)
        """Ask for what may travel with the equations, before these are gathered."""

    def finds_falls(self, work: Workspace) -> bool:
        """Whether it proves itself that F falls without bound, so that nobody has to look first."""
        return False

    def judge(self, work: Workspace, request: Request) -> Realized | None:
        """A realization to judge points on, for iterations without one of their own."""
        return None

    @abstractmethod
    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Everything before the first step; what it costs is charged to ``setup``."""
