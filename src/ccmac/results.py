"""What a solve returns: the solution, how good it provably is, and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ccmac import show
from ccmac.inputs import Array
from ccmac.ledger import Ledger, Trace
from ccmac.plans import Plan

ADVICE = {
    "optimal": "the tolerance is reached",
    "converged": "the tolerance is reached by an estimate; see .error_estimate",
    "stalled": "this method can gain no more in double precision; see .error_bound and .residuals",
    "max_iterations": "stopped by the iteration or time limit; raise it or loosen tol",
    "unbounded": "the objective falls without bound along a direction that keeps the equations",
    "infeasible": "the equations contradict each other; see .infeasibility",
    "interrupted": "stopped by the user; the iterate is usable and can warm-start a new run",
    "diverged": "the iterates grew without bound; check the constants of the objectives",
}


FACTS = (
    *("status", "message", "objective", "error_bound", "error_estimate", "relative_error"),
    *("iterations", "seconds", "residuals", "ledger", "plan", "certificates", "provenance"),
    "warnings",
)
FEW = 5
"""Entries, agents and rows that the text of a result lists."""


def _listed(values: dict[str, float], plain: bool = False) -> str:
    """The first of them, by name or ``plain``."""
    first = list(values.items())[:FEW]
    text = ", ".join(f"{value:.6g}" if plain else f"{name} {value:.6g}" for name, value in first)
    return text + (", ..." if len(values) > FEW else "")


@dataclass(frozen=True)
class Names:
    """Of the agents held here, the coupled rows and the entries of z; None where not given."""

    agents: tuple[str, ...] | None = None
    rows: tuple[str, ...] | None = None
    z: tuple[str, ...] | None = None


@dataclass
class Solution:
    """A point (x_i, z), accepted wherever a reference or a warm start is.

    Parameters
    ----------
    x : list of ndarray
        One block an agent.
    z : ndarray
        The shared variable.
    multipliers : Multipliers, optional
        Dual variables, for a warm start.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> start = ccmac.Solution([np.zeros(1)] * 3, np.zeros(1))
    >>> ccmac.solve(problem, warm_start=start).status
    'optimal'
    """

    x: list[Array]
    z: Array
    multipliers: Any = None


@dataclass(repr=False)
class Result(Solution):
    """The outcome of :func:`ccmac.solve`.

    ``error_bound`` is a certified bound on ||(x, z) - (x*, z*)|| computed without knowing the
    solution (NaN where a method offers none, or where it rests on an estimate: that is
    ``error_estimate``). Under MPI ``x`` holds the agents of this process.

    Parameters
    ----------
    x, z, multipliers : list of ndarray, ndarray, Multipliers
        The solution; see :class:`Solution`.
    status : str
        "optimal", "converged", "stalled", "max_iterations", "infeasible", "unbounded",
        "interrupted" or "diverged".
    objective : float
        The value F at the point.
    residuals : dict of str to float
        How well each kind of equation holds.
    error_bound, error_estimate : float
        Proved, or only estimated; NaN where there is none. In the units of x and z.
    iterations : int
        Steps taken.
    seconds : float
        Wall-clock time.
    relative_error : float
        ||w - w*||^2 / ||w0 - w*||^2 where a reference was given.
    ledger : Ledger
        What the run cost.
    trace : Trace
        One row an iteration.
    plan : Plan
        What was done.
    certificates, provenance : dict
        On what the bound rests, and with which versions it was found.
    infeasibility : Infeasibility, optional
        The proof that there is no solution.
    warnings : list of str
        What was noticed on the way.
    agents : range
        The agents whose x_i are here.
    names : Names, optional
        Names of agents, rows and entries of z.
    start : Solution, optional
        The warm start, from which a gap's radius counts; None: zero.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> result = ccmac.solve(problem, "ring", tol=1e-8)
    >>> result
    Result(cross-direct, optimal, 1 iterations)
    >>> result.z.round(6), result.error_bound < 1e-8
    (array([1.]), True)
    """

    status: str = "max_iterations"
    objective: float = float("nan")
    residuals: dict[str, float] = field(default_factory=dict)
    error_bound: float = float("nan")
    error_estimate: float = float("nan")
    iterations: int = 0
    seconds: float = 0.0
    relative_error: float = float("nan")
    ledger: Ledger = field(default_factory=Ledger)
    trace: Trace = field(default_factory=Trace)
    plan: Plan | None = None
    certificates: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    infeasibility: Any = None
    warnings: list[str] = field(default_factory=list)
    agents: range = range(0)
    names: Names | None = None
    start: Solution | None = None
    _problem: Any = field(default=None, repr=False)
    _geometry: Any = field(default=None, repr=False)

    def save(self, directory: str | Path, *, replace: bool = False) -> None:
        """Write the result with its proof, which ``ccmac-check`` confirms.

        Parameters
        ----------
        directory : path
            It appears complete or not at all.
        replace : bool
            Whether an earlier result there may go; anything else there is refused.

        Examples
        --------
        >>> import ccmac, tempfile
        >>> f = ccmac.objectives.SquaredDistance()
        >>> result = ccmac.solve(ccmac.Problem([ccmac.Agent(f, A=[[1.0]], b=[1.0])], q=0))
        >>> result.save(tempfile.mkdtemp())
        """
        from ccmac.storage.proofs import save_result

        save_result(self, Path(directory), replace=replace)

    @classmethod
    def load(cls, directory: str | Path) -> Result:
        """Read what :meth:`save` or ``ccmac solve --out`` wrote: without ledger, trace and plan.

        Parameters
        ----------
        directory : path
            Of the result.

        Examples
        --------
        >>> import ccmac, tempfile
        >>> f = ccmac.objectives.SquaredDistance()
        >>> folder = tempfile.mkdtemp()
        >>> ccmac.solve(ccmac.Problem([ccmac.Agent(f, A=[[1.0]], b=[1.0])], q=0)).save(folder)
        >>> ccmac.Result.load(folder).status
        'optimal'
        """
        from ccmac.storage.proofs import load_result

        return load_result(Path(directory))

    @property
    def geometry(self) -> Any:
        """The geometry of the user's problem (computed when first asked for)."""
        if self._geometry is None and self._problem is not None:
            from ccmac.angles.measure import geometry

            self._geometry = geometry(self._problem)
        return self._geometry

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """``x`` by agent, ``z`` by entry, multipliers ``coupled`` by row; numbers where unnamed.

        Examples
        --------
        >>> import ccmac
        >>> f = ccmac.objectives.SquaredDistance()
        >>> north = ccmac.Agent(f, A=[[1.0]], b=[1.0], name="north")
        >>> result = ccmac.solve(ccmac.Problem([north], q=0, row_names=["balance"]))
        >>> round(float(result.named["coupled"]["balance"]), 6)
        -1.0
        """
        names = self.names or Names()
        agents = names.agents or tuple(str(i) for i in self.agents)
        found: dict[str, dict[str, Any]] = {"x": dict(zip(agents, self.x, strict=True))}
        z = np.asarray(self.z)
        found["z"] = dict(zip(names.z or map(str, range(len(z))), z.tolist(), strict=True))
        if self.multipliers is not None:
            coupled = np.asarray(self.multipliers.coupled)
            rows = names.rows or map(str, range(len(coupled)))
            found["coupled"] = dict(zip(rows, coupled.tolist(), strict=True))
        return found

    @property
    def message(self) -> str:
        """The status in words."""
        if self.infeasibility is not None:
            return str(self.infeasibility.message)
        return ADVICE.get(self.status, self.status)

    def as_dict(self, *, solution: bool = False) -> dict[str, Any]:
        """Everything but the trace, ready for JSON."""
        record: dict[str, Any] = {name: getattr(self, name) for name in FACTS}
        record["ledger"] = self.ledger.as_dict()
        record["plan"] = None if self.plan is None else self.plan.as_dict()
        if self.infeasibility is not None:
            record["infeasibility"] = self.infeasibility.as_dict()
        if self.names is not None:
            record["names"] = asdict(self.names)
        if solution:
            record["x"] = [block.tolist() for block in self.x]
            record["z"] = np.asarray(self.z).tolist()
        return record

    def __str__(self) -> str:
        head = self.plan.method if self.plan is not None else "solve"
        lines = [f"{head}: {self.status} after {self.iterations} iterations ({self.message})"]
        if self.infeasibility is not None:
            lines.append(f"proved        {self.infeasibility.excluded}")
        if np.isfinite(self.objective):
            lines.append(f"objective     {self.objective:.10g}")
        if np.isfinite(self.error_bound):
            lines.append(f"error bound   {self.error_bound:.3g}  (certified, in your variables)")
        if np.isfinite(self.error_estimate):
            lines.append(f"error         {self.error_estimate:.3g}  (estimated, not proved)")
        if np.isfinite(self.relative_error):
            lines.append(f"relative err  {self.relative_error:.3g}  (to the reference)")
        named = self.named
        if len(self.z):
            plain = self.names is None or self.names.z is None
            lines.append(f"z             {_listed(named['z'], plain)}")
        for name, block in list(named["x"].items())[:FEW]:
            if len(block):
                entries = ", ".join(f"{value:.6g}" for value in block[:FEW])
                lines.append(f"x of {name:<9}{entries}{', ...' if len(block) > FEW else ''}")
        if len(self.x) > FEW:
            lines.append(f"              and {len(self.x) - FEW} more")
        shown = ", ".join(f"{k} {v:.1e}" for k, v in self.residuals.items())
        if shown:
            lines.append(f"residuals     {shown}")
        if self.names is not None and self.names.rows and self.multipliers is not None:
            largest = sorted(named["coupled"].items(), key=lambda pair: -abs(pair[1]))
            lines.append(f"multipliers   {_listed(dict(largest))}")
        lines += [f"warning       {text}" for text in self.warnings]
        lines += ["", str(self.ledger)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = str(self).split("\n\n")[0].splitlines()
        return show.card(lines[0], lines[1:], show.ledger_html(self.ledger))

    def __repr__(self) -> str:
        method = "" if self.plan is None else f"{self.plan.method}, "
        return f"Result({method}{self.status}, {self.iterations} iterations)"

    def plot(self, against: str = "rounds", ax: Any = None) -> Any:
        """Draw the bill, residuals, multipliers and the history of the error.

        Parameters
        ----------
        against : str
            The column of the trace that the history is drawn against.
        ax : matplotlib.axes.Axes, optional
            Draw the history alone, into these axes.

        Returns
        -------
        numpy.ndarray of matplotlib.axes.Axes
            One for each panel; ``ax`` where it was given.
        """
        return show.draw_result(self, against) if ax is None else self.trace.plot(against, ax)
