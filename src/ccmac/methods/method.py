"""A method: a named composition of realization, normalization and iteration.

A new method is one file that defines a :class:`Method`; ``ccmac.methods`` lists it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.stopping import Stopping
from ccmac.costs import Costs
from ccmac.methods.base import Iteration
from ccmac.problem import Problem
from ccmac.realizations.supplied import Certificates
from ccmac.runtime.base import Runtime
from ccmac.stack import Stack
from ccmac.workspace.coupling import Coupling
from ccmac.workspace.curvature import CurvatureTable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Context:
    """Everything a method may look at while it prepares (inside the ``setup`` phase).

    ``target`` is the relative squared error the planner aims at, ``measure`` which blocks count in
    it. ``x0``/``z0`` is the start in user variables (flat x, one z for all agents).
    """

    problem: Problem
    runtime: Runtime
    tol: float
    x0: Array
    z0: Array
    reference: bool = False
    target: float = 1e-6
    measure: tuple[float, float] = (1.0, 1.0)
    realization: str | None = None
    costs: Costs = field(default_factory=Costs)
    certificates: Certificates | None = None
    access: str = "factor"
    schedule: str | None = None
    tune: str | None = None
    reduction: str | None = None
    pinned: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    stack: Stack | None = None
    coupling: Coupling | None = None

    @cached_property
    def facts(self) -> Facts:
        """What the objectives declare, over all agents; one reduction, once."""
        return Facts.of(self.problem, self.runtime)


@dataclass(frozen=True)
class Facts:
    """Regime and structure: what a method's needs are compared with."""

    smooth: bool
    strongly_convex: bool
    quadratic: bool
    prox: bool
    table: CurvatureTable

    @classmethod
    def of(cls, problem: Problem, runtime: Runtime) -> Facts:
        """Gather the declarations of all agents."""
        table = CurvatureTable(problem, runtime)
        strongly = table.at(table.balance()).mu > 0
        return cls(table.smooth, strongly, table.quadratic, table.prox, table)


@dataclass
class Prepared:
    """A method ready to run.

    ``widen`` rebuilds it with wider spectral intervals after a blow-up (None: it cannot).
    ``finish`` may replace the final point (a repair) before the result is made.
    """

    iteration: Iteration
    stopping: Stopping | None
    realization: str
    why: str
    settings: dict[str, Any] = field(default_factory=dict)
    predicted: float | None = None
    candidates: tuple[Any, ...] = ()
    certificates: dict[str, Any] = field(default_factory=dict)
    widen: Callable[[], Prepared] | None = None
    horizon: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Method:
    """Name, one line, what it needs, and how it prepares.

    ``needs`` is a subset of {"smooth", "strongly convex", "quadratic", "prox"}.
    """

    name: str
    summary: str
    needs: frozenset[str]
    prepare: Callable[[Context], Prepared]
    realizations: tuple[str, ...] = ("averaged",)
    suggestion: str = "cross-apapc"
