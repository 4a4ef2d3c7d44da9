"""What a solve is going to do, and what it is expected to cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from ccmac.ledger import UNITS, Cost


@dataclass(frozen=True)
class Plan:
    """Method, realization and settings, with the prediction they were chosen by.

    ``iterations`` is None where nothing is predicted. ``iteration`` is the static cost of one step,
    ``setup`` what was spent to make the plan, ``candidates`` what was considered, best first.
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
    candidates: tuple[Any, ...] = ()

    @property
    def predicted(self) -> dict[str, float] | None:
        """Predicted ledger of the solve phase."""
        if self.iterations is None or self.iterations == float("inf"):
            return None
        return {unit: count * self.iterations for unit, count in self.iteration.items()}

    def as_dict(self, limit: int = 12) -> dict[str, Any]:
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
            "candidates": [_row(c) for c in self.candidates[:limit]],
        }

    def __str__(self) -> str:
        lines = [
            f"method          {self.method} ({self.realization})",
            f"why             {self.why}",
            f"averaging       {self.averaging}: {self.averaging_rounds} rounds each",
        ]
        for name, value in self.settings.items():
            lines.append(f"{name:<15} {_shown(value)}")
        per = ", ".join(
            f"{self.iteration[u]} {u}" for u in UNITS if self.iteration[u] and u != "bytes"
        )
        lines.append(f"per iteration   {per}")
        if self.predicted is not None and self.iterations is not None:
            total = ", ".join(
                f"{self.predicted[u]:,.0f} {u}"
                for u in ("gradients", "argmins", "affine", "rounds")
                if self.predicted.get(u)
            )  # fmt: skip
            lines.append(f"predicted       {self.iterations:.0f} iterations: {total}")
        spent = ", ".join(
            f"{self.setup[u]:,} {u}" for u in ("gradients", "rounds") if self.setup[u]
        )
        lines.append(f"setup           {spent or 'nothing'} spent to make this plan")
        if self.candidates:
            lines += ["", *_table(self.candidates[:8])]
        return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value)


def _row(candidate: Any) -> dict[str, Any]:
    return asdict(candidate) if is_dataclass(candidate) and not isinstance(candidate, type) else {}


def _table(candidates: tuple[Any, ...]) -> list[str]:
    head = f"{'normalizer':<20}{'outer':>6}{'scale':>8}{'kappa_f':>9}"
    head += f"{'iters':>8}{'rounds':>9}{'bill':>9}"
    rows = [head]
    for c in candidates:
        name = f"{c.normalizer} {c.inner}"
        rows.append(
            f"{name:<20}{c.outer:>6}{c.scale:>8.3g}{c.kappa_f:>9.3g}"
            f"{c.iterations:>8.0f}{c.rounds:>9.0f}{c.bill:>9.0f}"
        )
    return rows
