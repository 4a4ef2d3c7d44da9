"""What the driver runs: an iteration with a start, a step and a point; it never loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.error_bound import Dual
from ccmac.ledger import Cost
from ccmac.realizations.base import Realized
from ccmac.realizations.objective import ExecutionObjective
from ccmac.realizations.system import AffineSystem
from ccmac.runtime.space import Space

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """Phi and the normalized constraints."""

    objective: ExecutionObjective
    system: AffineSystem


@dataclass
class State:
    """Everything an iteration carries, in forms that split by agent for a checkpoint.

    ``vectors``: execution vectors (layout of the iteration's space); ``rows``: arrays with one
    row an owned agent, or the single row of what all know; ``scalars``: common numbers.
    """

    vectors: dict[str, Array] = field(default_factory=dict)
    rows: dict[str, Array] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)


class Iteration(ABC):
    """One method on one realized problem.

    ``space`` lays out the vectors of the state; ``point`` gives the iterate in the user's
    variables.
    """

    name: str
    space: Space

    @abstractmethod
    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """State at user variables (flat x, rows z).

        ``dual`` is K'lambda in user units (or None).
        """

    @abstractmethod
    def step(self, state: State) -> State:
        """One iteration; may reuse the arrays of ``state``."""

    @abstractmethod
    def point(self, state: State) -> tuple[Array, Array]:
        """(flat x, rows of z copies) in the user's units."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Static cost of one step."""

    def finished(self, state: State) -> bool:
        """Whether the method's own schedule is over."""
        return False

    def embedded(self, state: State, realized: Realized) -> Array:
        """The iterate as an execution vector of ``realized``."""
        return realized.embed(*self.point(state))

    def dual(self, state: State, realized: Realized) -> Dual | None:
        """The dual state at :meth:`embedded`; None for methods that keep none on ``realized``."""
        return None


class Solver(ABC):
    """Frozen hyperparameters with pure init and step over a :class:`Model`."""

    @abstractmethod
    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """State at w0; ``p`` is a warm dual state in Range K'."""

    @abstractmethod
    def step(self, model: Model, state: State) -> State:
        """One iteration."""

    @abstractmethod
    def iteration_cost(self, model: Model) -> Cost:
        """Static cost of one step."""

    def output(self, state: State) -> Array:
        """The execution vector to report."""
        return state.vectors["w"]


class ModelIteration(Iteration):
    """A :class:`Solver` on a :class:`Realized` problem, in the user's variables."""

    def __init__(self, name: str, solver: Solver, realized: Realized) -> None:
        self.name, self.solver, self.realized = name, solver, realized
        self.space = realized.space
        self.model = Model(realized.objective, realized.system)

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """Embed the user's variables; the dual scales like a gradient."""
        w0 = self.realized.embed(x, z)
        p = None
        if dual is not None:
            p = np.zeros_like(w0)
            p[: self.space.z_end] = dual[: self.space.z_end]
            self.space.z(p)[...] *= self.realized.s
        return self.solver.init(self.model, w0, p)

    def step(self, state: State) -> State:
        """One step of the solver."""
        return self.solver.step(self.model, state)

    def point(self, state: State) -> tuple[Array, Array]:
        """Local variables and copies."""
        w = self.solver.output(state)
        return self.space.x(w), self.realized.copies(w)

    def embedded(self, state: State, realized: Realized) -> Array:
        """The solver's own vector where the realization is its own."""
        own = realized is self.realized
        return self.solver.output(state) if own else super().embedded(state, realized)

    def dual(self, state: State, realized: Realized) -> Dual | None:
        """p and its price."""
        if realized is not self.realized or "price" not in state.rows:
            return None
        return Dual(state.vectors["p"], state.rows["price"])

    @property
    def cost(self) -> Cost:
        """Static cost of one step."""
        return self.solver.iteration_cost(self.model)
