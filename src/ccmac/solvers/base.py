"""What a solver is: hyperparameters, an initial state, a step. It never loops and never charges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.pipeline.execution import ExecutionObjective
from ccmac.pipeline.system import AffineSystem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """What a solver works on: Phi and the normalized constraints."""

    objective: ExecutionObjective
    system: AffineSystem


@dataclass
class State:
    """Named execution vectors (``w`` is the iterate), prices, and a few scalars."""

    vectors: dict[str, Array]
    prices: dict[str, Array] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)

    @property
    def w(self) -> Array:
        """The current iterate."""
        return self.vectors["w"]


class Solver(ABC):
    """Pure init and step over a :class:`Model`."""

    @abstractmethod
    def init(self, model: Model, w0: Array, dual: tuple[Array, Array] | None = None) -> State:
        """State at w0; ``dual`` is a warm (p, price) pair with p in Range K'."""

    @abstractmethod
    def step(self, model: Model, state: State) -> State:
        """One iteration (may reuse the arrays of ``state``)."""

    @abstractmethod
    def iteration_cost(self, model: Model) -> Cost:
        """Static cost of one step."""

    def dual(self, state: State) -> tuple[Array, Array]:
        """(p, price): p = K'lambda approaches -grad Phi(w*), price its coupled part."""
        return state.vectors["p"], state.prices["p"]

    def describe(self) -> dict[str, Any]:
        """Hyperparameters for the record."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}
