"""One object that holds what is derived from (problem, network, runtime).

Making it announces what the agents declare of themselves: one averaging. What is asked of them
later is asked by name: methods called ``gather_``... send messages the first time and return what
they found ever after; those called ``announce_``... send it along with the next message. All is
charged to ``setup``. Properties send nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any, TypeVar

from ccmac.errors import InputError
from ccmac.limits import Reduction
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.stack import DENSE, Stack, stack_problem
from ccmac.workspace.declared import CurvatureTable, owned_part
from ccmac.workspace.dual import DualForm, Explicit
from ccmac.workspace.equations import (
    Constraints,
    Coupling,
    Kernel,
    LocalEquations,
    SharedEquations,
    SummedConstraints,
    affordable,
    kernels_of,
)
from ccmac.workspace.schur import Summed

Found = TypeVar("Found")

KEPT: Mapping[str, frozenset[str]] = {
    "space": frozenset(),
    "coupling": frozenset(),
    "eliminated": frozenset(),
    "range": frozenset(),
    "local": frozenset("c"),
    "shared": frozenset("e"),
    "kernels": frozenset("c"),
    "constraints": frozenset("bce"),
}
"""What later solves may keep, and the right-hand sides whose change ends it; the rest is lost."""
WELL = 1e4  # condition of unit rows up to which their squares tell dependent rows from others
UNSEEN = (
    f"a stack of more than {DENSE} unknowns: whether its channels agree, and what rounding does to "
    "their residuals, is not looked at"
)


class Workspace:
    """A problem (or a :class:`Stack`, as one agent with its rows) on a runtime.

    ``whole`` is the problem as given, ``problem`` the part whose agents this process owns, with
    equations alone; ``reduction`` is how that came about where there are inequalities or bounds.
    """

    def __init__(self, problem: Problem | Stack, runtime: Runtime) -> None:
        self.stack = problem if isinstance(problem, Stack) else None
        self.whole = stack_problem(problem) if isinstance(problem, Stack) else problem
        if not isinstance(self.whole, Problem):
            raise InputError(
                f"problem: expected a ccmac.Problem or Stack, got {type(problem).__name__}"
            )
        if runtime.n != self.whole.n:
            raise InputError(
                f"network: has {runtime.n} agents but the problem has {self.whole.n}; "
                "build the network for the problem's n"
            )
        self.runtime = runtime
        self.ledger = runtime.ledger
        self.recycles = False  # whether solves leave something behind for later ones
        self.agreed: dict[str, Any] = {}  # what a method's agents exchanged, for later solves
        self.plans: dict[
            Any, tuple[Any, frozenset[str]]
        ] = {}  # what methods planned, and sides new since
        self.doubts: list[str] = []  # about declared constants or right-hand sides
        self.declared = False  # whether some agent's objective is its owner's own
        self.own_condition = 1.0  # of the worst agent's own rows, once they were looked at
        self._gathered: dict[str, Any] = {}  # by name, what agents were asked for
        with self.ledger.phase("setup"):
            self.problem, limited, self.curvature = owned_part(self.whole, runtime)
            self.reduction = Reduction.of(self.problem, runtime) if limited else None
            if self.reduction is not None:
                self.problem = self.reduction.problem
                self.curvature = CurvatureTable(self.problem, runtime)
            self.capabilities = _offered(self.curvature)
        if self.stack is not None and self.stack.dim > DENSE:
            self.doubts.append(UNSEEN)

    def updated(self, whole: Problem, changed: Collection[str]) -> Workspace:
        """The same matrices with other right-hand sides or linear terms; keeps what it can.

        ``changed`` names them (b, c, e, values of bounds, or others of the objectives). No
        communication.
        """
        other = copy.copy(self)
        way = self.reduction
        other.doubts = []
        other.whole = other.problem = whole
        before = self.problem if way is None else way.user
        if before is not self.whole:
            held = {i: whole.agents[i] for i in self.runtime.owned}
            other.problem = whole.holding(held, present=before.present)
        if way is not None:
            other.reduction = way.again(other.problem)
            other.problem = other.reduction.problem
        lost = self.agreed.keys() if "y" in changed else set()
        other.agreed = {k: v for k, v in self.agreed.items() if k not in lost}
        moved = frozenset(changed) if way is None else frozenset("bce")
        other.plans = {k: (v, known | moved) for k, (v, known) in self.plans.items()}
        other._gathered = {k: v for k, v in self._gathered.items() if _kept(k, changed)}
        for name in CACHED & vars(other).keys():
            if not _kept(name, changed):
                del vars(other)[name]
        if "coupling" in vars(other):
            other.coupling = copy.copy(self.coupling)
            other.coupling.problem = other.problem  # realizations read right-hand sides from it
        known: DualForm | None = vars(other).get("eliminated")
        if known is not None:
            other.eliminated = again = copy.copy(known)
            again.take(other.problem)
        if "c" in changed and "local" in vars(self):
            other.local = self.local.again(other.problem)
        if "e" in changed and "shared" in vars(self):
            other.shared = self.shared.again(other.problem)
        equations: Constraints | None = self._gathered.get("constraints")
        if equations is not None and "e" not in changed and {"b", "c"} & set(changed):
            other._gathered["constraints"] = equations.again(other.problem, other.local)
        return other

    @cached_property
    def space(self) -> Space:
        """Vectors (x, z) of the owned agents."""
        return Space(self.runtime, list(self.problem.d.values()), self.problem.q)

    @cached_property
    def coupling(self) -> Coupling:
        """H = [A, B] of the owned agents."""
        return Coupling(self.problem, self.runtime, multiples=self.curvature.own("multiple"))

    @cached_property
    def local(self) -> LocalEquations:
        """C_i x_i = c_i, factorized."""
        return LocalEquations(self.problem, self.runtime)

    @cached_property
    def shared(self) -> SharedEquations:
        """D_i z = e_i, with orthonormal rows."""
        return SharedEquations(self.problem, self.runtime)

    @property
    def block(self) -> int:
        """Rows of the largest dense block that may come up."""
        problem = self.problem
        return max(problem.m + problem.q, int(self.curvature.d.max(initial=0)))

    @property
    def gatherable(self) -> bool:
        """Whether all may know the equations: their number, and nobody who hides its rows."""
        if self.runtime.averaging.hides:
            return False
        plain = self.reduction is None and not self.curvature.conic
        # Inequalities and bounds: without the equations known to all they take far longer.
        room = 1 if plain else 8
        return affordable(self.problem, self.curvature, room)

    @property
    def hides(self) -> bool:
        """Whether nobody's rows are seen, and their sums suffice."""
        hidden = self.reduction is None and self.runtime.averaging.hides
        return hidden and affordable(self.problem, self.curvature)

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The agents' ker C_i."""
        return kernels_of(self.local)

    @property
    def own_well_conditioned(self) -> bool:
        """Whether no agent's own rows are nearly dependent."""
        return self.own_condition <= WELL

    @property
    def well_conditioned(self) -> bool:
        """Whether it is known that no rows are nearly dependent, together or in one agent."""
        known = self._gathered.get("constraints")
        return self.own_well_conditioned and known is not None and known.condition <= WELL

    @cached_property
    def eliminated(self) -> DualForm | None:
        """The dual in the coupled multiplier alone, where z follows from it."""
        with self.ledger.phase("setup"):
            if self.stack is not None or not self.curvature.eliminates_z:
                return None
            found = DualForm(self.problem, self.runtime, self.coupling, self.curvature)
        return found if found.mu > 0 and found.c > 0 else None

    # -- what agents are asked for ---------------------------------------------------------------
    def once(self, name: str, ask: Callable[[], Found]) -> Found:
        """What was found under the name; asked for the first time, charged to the setup."""
        if name not in self._gathered:
            with self.ledger.phase("setup"):
                self._gathered[name] = ask()
        found: Found = self._gathered[name]
        return found

    @property
    def constraints(self) -> Constraints | None:
        """The equations, or their squares, as far as they have been gathered."""
        known: Constraints | None = self._gathered.get("constraints")
        return known or self._gathered.get("sums")

    def gather_constraints(self) -> Constraints | None:
        """The equations on ker C, known to all; None where that costs too much."""

        def ask() -> Constraints | None:
            if not self.gatherable:
                return None
            return Constraints(self.problem, self.runtime, self.curvature, self.kernels)

        return self.once("constraints", ask)

    def gather_sums(self, *, small: bool = False) -> SummedConstraints | None:
        """The equations as far as sums of squares tell of them, where rows are masked.

        ``small``: only where there is little to send, or they are known already.
        """

        def ask() -> SummedConstraints | None:
            if not self.hides:
                return None
            return SummedConstraints(self.problem, self.runtime, self.curvature, self.kernels)

        m = self.problem.m
        q = self.problem.q
        # Floats of the sums of squares that are asked for whatever the method.
        if small and m * (m + 1) / 2 + 2 * m * q + q * q > 20_000:
            return self._gathered.get("sums")
        return self.once("sums", ask)

    def gather_provable(self) -> Constraints | None:
        """What bounds may rest on: the equations, or small sums of squares where these suffice."""
        known = self.gather_constraints()
        if known is not None:
            return known
        sums = self.gather_sums(small=True)
        return sums if sums is not None and sums.independent else None

    def announce_schur(self) -> Summed:
        """The agents' quadratics on ker C, eliminated: they travel with the next message."""
        return self.once("schur", lambda: Summed(self.problem, self.runtime, self.kernels))

    def gather_explicit(self) -> Explicit | None:
        """The problem in x alone, where the coupled rows give z."""
        if self.stack is not None:
            return None
        table = self.curvature
        return self.once("explicit", lambda: Explicit.of(self.problem, self.runtime, table))


def _kept(name: str, changed: Collection[str]) -> bool:
    """Whether what is derived under a name outlives changes of right-hand sides."""
    return KEPT.get(name, frozenset(changed)).isdisjoint(changed)


def _offered(table: CurvatureTable) -> frozenset[str]:
    """What the objectives offer together (polyhedral: quadratics with bounds and kinks)."""
    offered = {
        "smooth": table.smooth,
        "strongly convex": table.strongly_convex,
        "polyhedral": table.polyhedral,
        "quadratic": table.quadratic,
        "prox": table.prox,
    }
    return frozenset(name for name, there in offered.items() if there)


CACHED = frozenset(k for k, v in vars(Workspace).items() if isinstance(v, cached_property))
