"""What a solve is going to do, and what it is expected to cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ccmac import show
from ccmac.ledger import Cost

SUM = "sum"
SKETCH = "sketch"
ITERATE = "iterate"
REGIMES = {
    SUM: "one matrix is summed, all solve alike",
    SKETCH: "a block of vectors is summed once, then single ones",
    ITERATE: "one vector an averaging",
}
SEEN = {
    "relay": "every agent sees every agent's part",
    "tree": "a parent sees its branch's sum, all see the whole sum",
    "masked": "all see the sum, nobody a part",
}


@dataclass(frozen=True)
class Alternative:
    """One way to solve the problem, and what its averagings are expected to send in all.

    ``bill`` is what that costs; ``reveals`` says what agents send parts of.
    """

    regime: str
    method: str
    predicted: Cost
    bill: float
    reveals: str

    def as_dict(self) -> dict[str, Any]:
        """For --json and the record."""
        units = ("averagings", "rounds", "bytes", "network_bytes", "longest_message")
        counts = {unit: self.predicted[unit] for unit in units}
        about = {"regime": self.regime, "method": self.method}
        return {**about, **counts, "bill": self.bill, "reveals": self.reveals}


@dataclass(frozen=True, repr=False)
class Plan:
    """Method, realization and settings, with the prediction they were chosen by.

    ``iterations`` is None where nothing is predicted. ``iteration`` is the static cost of one step,
    ``setup`` what was spent to make the plan, ``alternatives`` the ways to solve the problem that
    ``auto`` knows, cheapest first. ``reveals`` says what agents send parts of.

    Parameters
    ----------
    method, realization, why : str
        What is taken, how constraints are executed, and the rule that decided.
    averaging : str
        The scheme of sums over all agents.
    averaging_rounds : int
        Neighbor rounds of one such sum.
    iteration, setup : Cost
        The cost of one step, and what was spent to make the plan.
    iterations : float, optional
        The number of steps expected.
    settings : mapping
        What the method chose.
    alternatives : tuple of Alternative
        Other ways, cheapest first.
    reveals : str
        What agents send parts of.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> ccmac.plan(problem, "ring")
    Plan(cross-direct, summed, relay)
    """

    method: str
    realization: str
    why: str
    averaging: str
    averaging_rounds: int
    iteration: Cost
    setup: Cost
    iterations: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    reveals: str = ""

    @property
    def predicted(self) -> dict[str, float] | None:
        """Predicted ledger of the solve phase."""
        if self.iterations is None or self.iterations == float("inf"):
            return None
        return {unit: count * self.iterations for unit, count in self.iteration.items()}

    @property
    def seen(self) -> str:
        """Who sees what of it."""
        return SEEN.get(self.averaging, "in sums")

    def as_dict(self) -> dict[str, Any]:
        """For --json and the record."""
        return {
            "method": self.method,
            "realization": self.realization,
            "why": self.why,
            "averaging": {"scheme": self.averaging, "rounds": self.averaging_rounds},
            "iteration": dict(self.iteration),
            "setup": dict(self.setup),
            "predicted_iterations": self.iterations,
            "predicted": self.predicted,
            "settings": dict(self.settings),
            "alternatives": [a.as_dict() for a in self.alternatives],
            "reveals": {"parts_of": self.reveals, "seen": self.seen},
        }

    def __repr__(self) -> str:
        return f"Plan({self.method}, {self.realization}, {self.averaging})"

    def _repr_html_(self) -> str:
        lines = str(self).split("\n\n")[0].splitlines()
        units = ("averagings", "rounds", "bytes")
        rows = [
            (a.method, a.regime, *(f"{a.predicted[unit]:,}" for unit in units))
            for a in self.alternatives
        ]
        tables = [show.table(("alternative", "regime", *units), rows)] if rows else []
        return show.card(repr(self), lines, *tables)

    def plot(self, ax: Any = None) -> Any:
        """Draw the predicted rounds of the alternatives; returns the axes."""
        return show.draw_plan(self, ax)

    def __str__(self) -> str:
        lines = [
            f"method          {self.method} ({self.realization})",
            f"why             {self.why}",
            f"averaging       {self.averaging}: {self.averaging_rounds} rounds each",
        ]
        for name, value in self.settings.items():
            lines.append(f"{name:<15} {_shown(value)}")
        lines.append(f"per iteration   {_spelled(self.iteration)}")
        if self.predicted is not None and self.iterations is not None:
            total = ", ".join(
                f"{self.predicted[u]:,.0f} {u}"
                for u in ("gradients", "argmins", "affine", "rounds")
                if self.predicted.get(u)
            )
            lines.append(f"predicted       {self.iterations:.0f} iterations: {total}")
        units = ("gradients", "averagings", "rounds")
        spent = ", ".join(_counted(self.setup, u) for u in units if self.setup[u])
        lines.append(f"setup           {spent or 'nothing'} spent to make this plan")
        lines.append(f"reveals         {self.reveals} ({self.seen})")
        if self.alternatives:
            lines += ["", *shown_alternatives(self.alternatives)]
        return "\n".join(lines)


def shown_alternatives(alternatives: Sequence[Alternative]) -> list[str]:
    """A table."""
    head = f"{'regime':<9}{'method':<20}{'averagings':>11}"
    rows = [head + f"{'rounds':>9}{'MB':>10}{'longest':>11}"]
    for a in alternatives:
        cost = a.predicted
        rows.append(
            f"{a.regime:<9}{a.method:<20}{cost['averagings']:>11,}{cost['rounds']:>9,}"
            f"{cost['bytes'] / 1e6:>10,.3g}{cost['longest_message']:>11,}"
        )
    return rows


def _spelled(cost: Cost) -> str:
    """Local work, products, messages."""
    parts = [_counted(cost, u) for u in ("gradients", "argmins", "proxes", "affine") if cost[u]]
    products = ", ".join(f"{cost[u]:,} with {u}" for u in "ABCD" if cost[u])
    parts += [f"products ({products})"] if products else []
    parts += [_counted(cost, u) for u in ("averagings", "rounds", "bytes") if cost[u]]
    longest = cost["longest_message"]
    return ", ".join([*parts, *([f"longest message {longest:,} floats"] if longest else [])])


def _counted(cost: Cost, unit: str) -> str:
    one = {"proxes": "prox", "affine": "affine"}.get(unit, unit.removesuffix("s"))
    return f"{cost[unit]:,} {one if cost[unit] == 1 else unit}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value)
