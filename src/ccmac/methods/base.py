"""What every method is made of: options, a state, an iteration, and what it prepares.

An option is a field of a method's frozen dataclass, made by :func:`option`: typed, documented, and
refused by name before any work. The strings of the command line, of suites and of
``method="cross-apapc"`` become such a dataclass in :func:`built`; :func:`check` runs when one is
made, however that happens.

A :class:`Method` is one frozen dataclass that owns its options. :meth:`Method.prepare` looks at the
workspace and gives a :class:`Prepared`: an :class:`Iteration` with a typed state, and the rule that
stops it. The driver alone loops, checks, saves and reports; an iteration starts, steps, and tells
its point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ccmac.certificates.bound import Dual, Proved
from ccmac.certificates.stopping import FIRST_CHECK, Stopping
from ccmac.errors import InputError, MethodRefused
from ccmac.inputs import LARGEST, Array
from ccmac.ledger import Cost, Costs
from ccmac.realizations.base import Realized
from ccmac.runtime import Runtime
from ccmac.runtime.space import Space
from ccmac.texts import nearest, shown
from ccmac.workspace import Workspace

# -- options ---------------------------------------------------------------------------------------
M = TypeVar("M")
MOST = 1_000_000  # of steps, vectors and degrees: beyond, a typing mistake


@dataclass(frozen=True)
class Option:
    """What an option means, its kind, its choices, and the realizations it belongs to (all: ()).

    Numbers lie ``below`` a limit.
    """

    doc: str
    kind: type
    choices: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    below: float = math.inf


def option(
    default: Any,
    kind: type,
    doc: str,
    *,
    choices: Iterable[str] = (),
    only: Iterable[str] = (),
    below: float = math.inf,
) -> Any:
    """A field of a method: ``int`` at least 1, ``float`` positive, ``str`` one of ``choices``."""
    about = Option(doc, kind, tuple(choices), tuple(only), below)
    return field(default=default, metadata={"option": about})


def options_of(method: Any) -> dict[str, Option]:
    """Name and meaning of every option of a method (class or object), in order."""
    return {f.name: f.metadata["option"] for f in fields(method) if "option" in f.metadata}


def check(method: Any) -> None:
    """Refuse a value of the wrong kind, an unknown choice, an option of another realization."""
    where = getattr(method, "realization", None)
    for f in fields(method):
        about: Option | None = f.metadata.get("option")
        if about is None:
            continue
        value = getattr(method, f.name)
        if value is None and f.default is None:
            continue
        _check_value(f"{method.name}: {f.name}", value, about)
        if about.only and where not in about.only and value != f.default:
            raise InputError(
                f"{method.name}: {f.name} belongs to realization {' or '.join(about.only)}; "
                f"leave it out with realization {where!r}"
            )


def _check_value(place: str, value: Any, about: Option) -> None:
    kind = about.kind
    if kind is int and (type(value) is not int or value < 1):
        raise InputError(f"{place} = {shown(value)} must be a whole number, at least 1")
    if kind is int and value > MOST:
        raise InputError(f"{place} = {shown(value)} is more than {MOST:,}; give fewer")
    if kind is float and not (_is_number(value) and 0 < value < about.below):
        limit = "" if about.below == math.inf else f" below {about.below:g}"
        raise InputError(f"{place} = {shown(value)} must be a positive number{limit}")
    if kind is bool and not isinstance(value, bool):
        raise InputError(f"{place} = {shown(value)} must be true or false")
    if about.choices and not (isinstance(value, str) and value in about.choices):
        raise InputError(f"{place} = {shown(value)} is unknown; {nearest(value, about.choices)}")
    if kind not in (int, float, bool, str) and not isinstance(value, kind):
        raise InputError(f"{place}: expected {kind.__name__}, got {type(value).__name__}")


def _is_number(value: Any) -> bool:
    """Whether it is one, not beyond :data:`LARGEST`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST


def built(cls: type[M], options: Mapping[str, Any], others: Mapping[str, str]) -> M:
    """The method of class ``cls`` with ``options``; strings are read as the option's kind.

    ``others`` names, for options that ``cls`` does not have, a method that has them.
    """
    known = options_of(cls)
    values = {}
    label = getattr(cls, "name", cls.__name__)
    for name, value in options.items():
        refuse_option(label, name, known, others)
        values[name] = _read(f"{label}: {name}", value, known[name])
    return cls(**values)


def refuse_option(
    label: str, name: str, known: Iterable[str], others: Mapping[str, str] | None = None
) -> None:
    """An option that is not among the ``known`` ones, with the nearest, or who has it."""
    if name in known:
        return
    if others and name in others:
        raise InputError(f"{label}: has no option {name!r}; {others[name]} has")
    raise InputError(f"{label}: option {shown(name)} is unknown; {nearest(name, known)}")


def _read(place: str, value: Any, about: Option) -> Any:
    """Text of the command line as a number or truth value; mappings as the record asked for."""
    if isinstance(value, Mapping) and about.kind not in (int, float, bool, str, dict, list):
        unknown = [k for k in value if k not in {f.name for f in fields(about.kind)}]
        if unknown:
            names = [f.name for f in fields(about.kind)]
            raise InputError(
                f"{place}: {shown(unknown[0])} is unknown; {nearest(unknown[0], names)}"
            )
        return about.kind(**value)
    if about.kind is float and _is_number(value):
        return float(value)
    if not isinstance(value, str) or about.kind is str:
        return value
    if about.kind is bool and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if about.kind in (int, float):
        try:
            return about.kind(value)
        except ValueError:
            return value  # check names the option and what it takes
    return value


def described(cls: type[Any]) -> list[dict[str, Any]]:
    """The options of a method as a table: name, default, kind, choices, meaning."""
    rows = []
    for f in fields(cls):
        about: Option | None = f.metadata.get("option")
        if about is not None:
            default = None if f.default is MISSING else f.default
            rows.append(
                {
                    "name": f.name,
                    "default": default,
                    "kind": about.kind.__name__,
                    "choices": list(about.choices),
                    "realizations": list(about.only),
                    "meaning": about.doc,
                }
            )
    return rows


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
    """A method with its options, the fields that :func:`ccmac.methods.base.option` makes.

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

    def judge(self, work: Workspace, request: Request) -> Realized | None:
        """A realization to judge points on, for iterations without one of their own."""
        return None

    @abstractmethod
    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Everything before the first step; what it costs is charged to ``setup``."""
