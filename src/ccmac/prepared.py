"""``prepare``: a problem on a network, to be solved again and again for less.

What does not depend on right-hand sides and linear terms is derived once: declarations, factorized
and gathered equations, the method that ``auto`` chose and, for cross-cg where z follows from the
multiplier, the sketch. Its solves moreover leave their directions, and random vectors that travel
with them, to the sketches of later ones (recycling), which costs floats but no rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.api import checked_limits, placed, run_on
from ccmac.errors import InputError
from ccmac.inputs import Array, is_whole
from ccmac.ledger import Costs
from ccmac.methods.base import Method, State
from ccmac.network import Network
from ccmac.objectives import Separable, SquaredDistance
from ccmac.objectives.data import with_linear_term, with_targets
from ccmac.plans import Alternative
from ccmac.problem import Agent, Problem
from ccmac.results import Result, Solution
from ccmac.runtime import Runtime
from ccmac.stack import Stack
from ccmac.texts import shown
from ccmac.vertical import VflProblem
from ccmac.workspace import Workspace

SIDES = ("b", "c", "e", "h", "y", "g", "lower", "upper")
OWN = ("b", "c", "e", "h", "lower", "upper")
BOUNDS = ("lower", "upper", "z_lower", "z_upper")


def prepare(
    problem: Problem | Stack,
    network: Network | str | Any | None = None,
    method: str | Method = "auto",
    *,
    runtime: Runtime | str | None = None,
    averaging: str = "auto",
    costs: Costs | None = None,
    seed: int = 0,
) -> PreparedProblem:
    """Set a problem up once, to be solved several times with other right-hand sides.

    Parameters
    ----------
    problem, network, method : as in :func:`ccmac.solve`
        What is solved, where and how.
    runtime, averaging, costs, seed : as in :func:`ccmac.solve`
        The conditions.

    Returns
    -------
    PreparedProblem

    Examples
    --------
    >>> import ccmac, numpy as np
    >>> X, y = np.random.default_rng(0).standard_normal((2000, 12)), np.ones(2000)
    >>> prepared = ccmac.prepare(ccmac.vfl.problem(X, y, 4), "ring")
    >>> first = prepared.solve(1e-6)
    >>> prepared.update(y=-y)
    >>> second = prepared.solve(1e-6, warm_start=first)
    >>> first.ledger.of("setup")["rounds"], second.ledger.of("setup")["rounds"]
    (4, 0)
    """
    work, asked = placed(problem, network, method, runtime, averaging, costs, seed)
    return PreparedProblem(work, asked, costs, seed)


class PreparedProblem:
    """A workspace, a method, and what earlier solves left behind.

    Parameters
    ----------
    work : Workspace
        The problem on a network. :func:`ccmac.prepare` makes it.
    method : Method
        How to solve it.
    costs : Costs or None
        Unit costs that plans are chosen by.
    seed : int
        Of the setup's random starts.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> prepared = ccmac.prepare(problem, "ring")
    >>> prepared.update(b={0: [4.0]})
    >>> prepared.solve().status
    'optimal'
    """

    def __init__(self, work: Workspace, method: Method, costs: Costs | None, seed: int) -> None:
        self._work = work
        self._method = method
        self._costs = costs
        self._seed = seed
        self._ranked: list[tuple[Method, str]] = []
        self._alternatives: dict[float, tuple[Alternative, ...]] = {}  # by tolerance
        self._last: tuple[Result, Result] | None = None  # as reported, as found
        work.recycles = True

    @property
    def problem(self) -> Problem:
        """As it stands."""
        return self._work.whole

    def solve(
        self,
        tol: float = 1e-6,
        *,
        warm_start: Solution | None = None,
        max_iterations: int | None = None,
        max_seconds: float | None = None,
        checkpoint: str | Path | Mapping[str, Any] | None = None,
        callback: Callable[[int, State], object] | None = None,
        progress: bool | None = None,
    ) -> Result:
        """Solve; the result's ledger holds what this solve cost.

        Parameters
        ----------
        tol : float
            As in :func:`ccmac.solve`.
        warm_start : Solution, optional
            Where to start.
        max_iterations, max_seconds : int and float, optional
            Limits.
        checkpoint : path or mapping, optional
            As in :func:`ccmac.solve`.
        callback : callable, optional
            Called with (iteration, state) after every step.
        progress : bool, optional
            A bar on standard error.

        Returns
        -------
        Result

        Examples
        --------
        >>> import ccmac
        >>> import numpy as np
        >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
        >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
        >>> ccmac.prepare(problem).solve(1e-8).status
        'optimal'
        """
        limits = checked_limits(max_iterations, max_seconds, checkpoint, callback, progress)
        known = warm_start is not None and self._last is not None and warm_start is self._last[0]
        run = run_on(
            self._work,
            self._method,
            tol,
            None,
            warm_start,
            self._costs,
            self._seed,
            self._last[1] if known and self._last is not None else None,
        )
        run.ranked, run.alternatives = self._ranked, self._alternatives.get(tol, ())
        result = run.solve(limits)
        self._ranked, self._alternatives[tol] = run.ranked, run.alternatives
        self._last = None if run.found is None else (result, run.found)
        result.ledger = self._work.ledger.taken()
        return result

    def update(
        self,
        *,
        b: Any = None,
        c: Any = None,
        e: Any = None,
        h: Any = None,
        y: Any = None,
        g: Any = None,
        lower: Any = None,
        upper: Any = None,
        z_lower: Any = None,
        z_upper: Any = None,
    ) -> None:
        """New sides b_i, c_i, e_i, h_i, targets y_i, linear terms g_i or bounds; no message.

        Each is a list with one entry an agent (None: as it was) or a mapping from agents; shapes
        are those of the problem; bounds stay where they are finite. ``z_lower`` and ``z_upper`` are
        vectors for all. For a vertical problem y may also be the vector of all labels. With nothing
        given, agents made of CVXPY models (:mod:`ccmac.cvx`) read their parameters anew.

        Parameters
        ----------
        b, c, e, h : list or mapping, optional
            Right-hand sides by agent.
        y, g : list or mapping, optional
            Targets and linear terms of the objectives by agent.
        lower, upper : list or mapping, optional
            Bounds of x by agent.
        z_lower, z_upper : array_like, optional
            Bounds of the shared variable.

        Examples
        --------
        >>> import ccmac
        >>> import numpy as np
        >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
        >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
        >>> prepared = ccmac.prepare(problem)
        >>> prepared.update(b=[[1.0], [2.0], [3.0]])
        >>> float(prepared.problem.agents[2].b[0])
        3.0
        """
        work = self._work
        if work.stack is not None:
            raise InputError("update: a Stack has no agents; prepare the changed one")
        whole = work.whole
        if isinstance(whole, VflProblem) and isinstance(y, np.ndarray) and y.ndim == 1:
            y = _labels(whole, y)
        given = dict(zip(SIDES, (b, c, e, h, y, g, lower, upper), strict=True))
        if all(v is None for v in (*given.values(), z_lower, z_upper)):
            given = _by_models(whole)
        changes = {k: _by_agent(k, v, whole) for k, v in given.items() if v is not None}
        agents = {i: _changed(i, agent, changes) for i, agent in whole.agents.items()}
        on_z = {k: v for k, v in (("z_lower", z_lower), ("z_upper", z_upper)) if v is not None}
        made = whole.holding(agents, **on_z)
        for name in BOUNDS:
            _same_places(name, whole, made)
        changed = copy.copy(whole)  # of its own kind: a vertical problem knows its partition
        for name in ("agents", "z_lower", "z_upper"):
            setattr(changed, name, getattr(made, name))
        if isinstance(changed, VflProblem) and changed.complete:
            changed.with_vertical(changed.vertical)
        self._work = work.updated(changed, {*changes, *on_z})


def _same_places(name: str, before: Problem, after: Problem) -> None:
    """Refuse bounds that come or go: what agents sent each other would no longer hold."""
    pairs = (
        [("z", before, after)]
        if name.startswith("z_")
        else [(before.who(i), before.agents[i], after.agents[i]) for i in before.agents]
    )
    for who, old, new in pairs:
        was = getattr(old, name)
        now = getattr(new, name)
        same = was is now or (was is not None and now is not None)
        if not same or (now is not None and (np.isfinite(was) != np.isfinite(now)).any()):
            raise InputError(
                f"update, {who}, {name}: a bound comes or goes; keep the same entries bounded, or "
                "prepare the changed problem"
            )


def _by_models(problem: Problem) -> dict[str, dict[int, Any]]:
    """{side: {agent: vector}} of the agents whose models know them."""
    found: dict[str, dict[int, Any]] = {}
    for i, agent in problem.agents.items():
        for name, side in {} if agent.model is None else agent.model.sides().items():
            found.setdefault(name, {})[i] = side
    return found


def _by_agent(name: str, given: Any, problem: Problem) -> dict[int, Any]:
    """{agent: array} of what was given."""
    if isinstance(given, Mapping):
        found = dict(given)
    elif (
        isinstance(given, Sequence | np.ndarray)
        and getattr(given, "ndim", 1) != 0
        and len(given) == problem.n
    ):
        found = {i: v for i, v in enumerate(given) if v is not None}
    else:
        raise InputError(
            f"update, {name}: give a list with one entry for each of the "
            f"{problem.n} agents, or a mapping from agents"
        )
    unknown = [i for i in found if not (is_whole(i) and 0 <= i < problem.n)]
    if unknown:
        raise InputError(f"update, {name}: {shown(unknown[0])} is no agent 0..{problem.n - 1}")
    return found


def _changed(i: int, agent: Agent, changes: Mapping[str, Mapping[int, Any]]) -> Agent:
    """The agent with its new vectors; errors name it."""
    sides = {k: changes[k][i] for k in OWN if i in changes.get(k, {})}
    objective = agent.objective
    try:
        if i in changes.get("y", {}):
            objective = with_targets(objective, changes["y"][i])
        if i in changes.get("g", {}):
            objective = with_linear_term(objective, changes["g"][i])
    except InputError as error:
        raise InputError(f"update, agent {i}: {error}") from None
    return replace(agent, objective=objective, **sides)


def _labels(problem: VflProblem, y: Array) -> dict[int, Any]:
    """Labels of the whole table as the targets of those agents that hold a loss."""
    if len(y) != problem.q or not problem.complete:
        raise InputError(f"update, y: give all {problem.q} labels, where all agents are")
    parts = {
        i: agent.objective.z_part
        for i, agent in problem.agents.items()
        if isinstance(agent.objective, Separable) and agent.objective.z_part is not None
    }
    # A ridge on the predictions moves the centre: see ccmac.vfl.
    weight = sum(part.weight for part in parts.values() if isinstance(part, SquaredDistance))
    target = y / problem.prediction_scale
    return {
        i: target / weight if isinstance(part, SquaredDistance) else target
        for i, part in parts.items()
    }
