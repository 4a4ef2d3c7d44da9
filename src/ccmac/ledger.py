"""What a run cost, counted where the work is done, and its history row by row.

A :class:`Ledger` is charged by the operator leaves, the runtime's exchanges and reductions, the
gradient wrapper and the normalized stack. Solvers never charge and nothing is estimated. An
operator also declares a static :class:`Cost`; that it equals the measured charge is a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac import show
from ccmac.errors import InputError, UnknownName
from ccmac.inputs import Array
from ccmac.texts import nearest, shown

UNITS: dict[str, str] = {
    "gradients": "parallel local gradients (or subgradients)",
    "argmins": "parallel local minimisations (never counted as gradients)",
    "proxes": "parallel proximal maps of the local objectives",
    "affine": "normalized stack applications, forward or adjoint",
    "A": "block-parallel products with the A_i or their transposes",
    "B": "block-parallel products with the B_i or their transposes",
    "C": "block-parallel products with the C_i or their transposes",
    "D": "block-parallel products with the D_i or their transposes",
    "rounds": "synchronous neighbor rounds, executed",
    "averagings": "exact sums over all agents, or among those whom rows concern",
    "modelled_rounds": "neighbor rounds of the theorem's oracle, modelled and not executed",
    "reductions": "scalar sums; they travel inside an averaging, or are one themselves",
    "bytes": "bytes sent by the busiest agent",
    "network_bytes": "bytes sent by all agents together",
    "messages": "messages sent by all agents together",
    "longest_message": "floats of the longest message",
}
GREATEST = frozenset({"longest_message"})  # units that do not add up: the greatest counts
PHASES = ("setup", "solve", "monitor")


def _unknown(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    return UnknownName(f"ledger: {kind} {shown(name)} is unknown; {nearest(name, known)}")


def _joined(unit: str, one: int, other: int) -> int:
    return max(one, other) if unit in GREATEST else one + other


class Cost(dict[str, int]):
    """A bundle of ledger units, zero where not named; adds, and multiplies by whole numbers.

    Of :data:`GREATEST` the larger counts in a sum, and a difference keeps what was there.
    """

    def __init__(self, units: Mapping[str, int] | None = None, /, **more: int) -> None:
        merged = {**(units or {}), **more}
        for unit in merged.keys() - UNITS.keys():
            raise _unknown("unit", unit, UNITS)
        super().__init__({u: int(k) for u, k in merged.items() if k})

    def __missing__(self, unit: str) -> int:
        if unit not in UNITS:
            raise _unknown("unit", unit, UNITS)
        return 0

    def __add__(self, other: Mapping[str, int]) -> Cost:
        units = dict(self)
        for unit, amount in other.items():
            units[unit] = _joined(unit, units.get(unit, 0), amount)
        return Cost(units)

    def __sub__(self, other: Mapping[str, int]) -> Cost:
        less = {u: self[u] - other.get(u, 0) for u in {*self, *other} - GREATEST}
        return Cost({**less, **{u: self[u] for u in GREATEST}})

    def __mul__(self, times: int) -> Cost:
        kept = min(times, 1)
        return Cost({u: k * (kept if u in GREATEST else times) for u, k in self.items()})

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"Cost({', '.join(f'{u}={self[u]}' for u in UNITS if u in self)})"


class Ledger:
    """Counters of :data:`UNITS` in the phases ``setup``, ``solve`` and ``monitor``.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> ledger = ccmac.solve(problem, "ring").ledger
    >>> ledger["rounds"], ledger.of("setup")["rounds"]
    (1, 2)
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {p: dict.fromkeys(UNITS, 0) for p in PHASES}
        self.current = "solve"
        """The phase that is charged now."""
        self._muted = 0

    def charge(self, **units: int) -> None:
        """Add to the current phase."""
        if self._muted:
            return
        counts = self._counts[self.current]
        for unit, amount in units.items():
            counts[unit] = _joined(unit, counts[unit], amount)

    def charge_cost(self, cost: Mapping[str, int]) -> None:
        """Add a whole :class:`Cost` to the current phase."""
        self.charge(**dict(cost))

    @property
    def muted(self) -> bool:
        """Whether an observer looks on: nothing is charged."""
        return self._muted > 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge to ``name`` inside the block."""
        if name not in PHASES:
            raise _unknown("phase", name, PHASES)
        before = self.current
        self.current = name
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def observing(self) -> Iterator[None]:
        """An observer's measurement (error to a known reference): charges nothing."""
        self._muted += 1
        try:
            yield
        finally:
            self._muted -= 1

    def __getitem__(self, unit: str) -> int:
        """Count of ``unit`` in the solve phase."""
        return self.of("solve")[unit]

    def of(self, phase: str) -> Cost:
        """Everything charged in one phase."""
        if phase not in PHASES:
            raise _unknown("phase", phase, PHASES)
        return Cost(self._counts[phase])

    def total(self, unit: str) -> int:
        """Count of ``unit`` over all phases."""
        if unit not in UNITS:
            raise _unknown("unit", unit, UNITS)
        counts = [self._counts[p][unit] for p in PHASES]
        return max(counts) if unit in GREATEST else sum(counts)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """All phases, all units that were used anywhere."""
        used = [u for u in UNITS if self.total(u)]
        return {p: {u: self._counts[p][u] for u in used} for p in PHASES}

    def taken(self) -> Ledger:
        """What was charged so far, in a ledger of its own; this one begins anew."""
        other = Ledger()
        other._counts, self._counts = self._counts, other._counts
        return other

    def restore(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Continue from the counts of :meth:`as_dict` (a checkpoint)."""
        for phase, units in counts.items():
            for unit in UNITS:
                self._counts[phase][unit] = int(units.get(unit, 0))

    def __str__(self) -> str:
        rows = [f"{'':16}" + "".join(f"{p:>12}" for p in PHASES)]
        for unit in UNITS:
            if self.total(unit):
                row = "".join(f"{self._counts[p][unit]:>12,}" for p in PHASES)
                rows.append(f"{unit:16}{row}")
        return "\n".join(rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return show.ledger_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw each unit's parts by phase; returns the axes."""
        return show.draw_ledger(self, ax)


@dataclass(frozen=True)
class Costs:
    """Unit costs that a plan is chosen by: of one gradient, one block product, one round, one byte
    sent by the busiest agent. By default a megabyte costs as much as a round.

    Parameters
    ----------
    gradient : float
        Of one parallel gradient or local minimisation.
    product : float
        Of one product with a block.
    round : float
        Of one neighbor round: a latency.
    byte : float
        Of one byte sent by the busiest agent.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> ccmac.plan(problem, "ring", costs=ccmac.Costs(round=10.0)).method
    'cross-direct'
    """

    gradient: float = 1.0
    product: float = 0.0
    round: float = 1.0
    byte: float = 1e-6

    def __post_init__(self) -> None:
        for name, cost in vars(self).items():
            if not (isinstance(cost, int | float) and 0 <= cost < float("inf")):
                raise InputError(f"costs: {name} = {shown(cost)} must be a number >= 0")
        if not any(vars(self).values()):
            raise InputError("costs: all of them are zero; give at least one that is positive")

    def bill(self, cost: Mapping[str, int]) -> float:
        """What a ledger cost amounts to."""
        products = sum(cost.get(unit, 0) for unit in "ABCD")
        return (
            self.gradient * (cost.get("gradients", 0) + cost.get("argmins", 0))
            + self.product * products
            + self.round * cost.get("rounds", 0)
            + self.byte * cost.get("bytes", 0)
        )


COLUMNS = (
    *("iteration", "seconds", "gradients", "argmins", "affine", "products", "rounds"),
    *("modelled_rounds", "bytes", "relative_error", "error_bound"),
)


class Trace:
    """The history of a run: one row per iteration, cumulative costs of the solve phase.

    A row has the :data:`COLUMNS`; NaN where something was not measured at that iteration. Of a run
    of more than ``limit`` rows every second is kept, later every fourth, and so on, and always the
    first and the last.

    Parameters
    ----------
    limit : int
        Rows that are kept, an even number; of longer runs every second, every fourth, and so on.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> trace = ccmac.solve(problem, "ring", "cross-apapc").trace
    >>> bool(np.all(np.diff(trace["rounds"]) > 0))
    True
    """

    def __init__(self, limit: int = 20_000) -> None:
        self.limit = max(int(limit) // 2 * 2, 2)
        self._rows: list[tuple[float, ...]] = []
        self._seen = 0
        self._stride = 1

    def record(
        self, iteration: int, seconds: float, ledger: Ledger, relative_error: float, bound: float
    ) -> None:
        """Append one row."""
        spent = ledger.of("solve")
        known: dict[str, float] = {"iteration": iteration, "seconds": seconds}
        known |= {"products": sum(spent[unit] for unit in "ABCD")}
        known |= {"relative_error": relative_error, "error_bound": bound}
        if self._seen and (self._seen - 1) % self._stride:  # the last row was not there to stay
            self._rows.pop()
        self._rows.append(tuple(known[name] if name in known else spent[name] for name in COLUMNS))
        if self._seen % self._stride == 0 and len(self._rows) > self.limit:
            self._stride *= 2
            self._rows = self._rows[::2]
        self._seen += 1

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Array:
        """All of it, a row each."""
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def __getitem__(self, column: str) -> Array:
        """One column as an array."""
        if column not in COLUMNS:
            hint = nearest(column, COLUMNS)
            raise UnknownName(f"trace: column {shown(column)} is unknown; {hint}")
        return self.rows[:, COLUMNS.index(column)]

    def as_dict(self) -> dict[str, list[float]]:
        """All columns."""
        return {name: self[name].tolist() for name in COLUMNS}

    def to_csv(self) -> str:
        """Comma-separated text with a header."""
        rows = (",".join(f"{v:.10g}" for v in row) for row in self.rows.tolist())
        return "\n".join([",".join(COLUMNS), *rows]) + "\n"

    def to_pandas(self) -> Any:
        """A DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.as_dict())

    def plot(self, against: str = "rounds", ax: Any = None) -> Any:
        """Draw the errors against a column; returns the axes."""
        return show.draw_trace(self, against, ax)

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows)"

    def _repr_html_(self) -> str:
        known = [name for name in COLUMNS if np.isfinite(self[name]).any()]
        rows = self.rows[-5:, [COLUMNS.index(name) for name in known]]
        last = show.table(known, [[f"{v:.4g}" for v in row] for row in rows])
        return show.card(f"{self!r}, the last ones", [], last)

    # -- for a checkpoint --------------------------------------------------------------------------
    def memory(self) -> list[int]:
        """What continues the :attr:`rows`."""
        return [self._seen, self._stride]

    def recall(self, memory: list[int], rows: Array) -> None:
        """Continue a stored history; ValueError where it is none."""
        self._seen, self._stride = (int(number) for number in memory)
        if rows.shape[1:] != (len(COLUMNS),) or self._stride < 1:
            raise ValueError("this is no history of a run")
        self._rows = [tuple(row) for row in rows.tolist()]
