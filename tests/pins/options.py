"""Which method takes which option, with which values; and names and values that nobody takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pins.problems import Posed, posed

REALIZED = {
    "realization": ("averaged", "canonical", "certified", "stack"),
    "certificates": ({"cross_factor": 9.0},),
    "scale": (0.5,),
    "inner": (3,),
    "outer": (2,),
}
JUDGED = {"certificates": ({"cross_factor": 9.0},)}
REDUCED = {"reduction": ("R1", "R2", "R3")}
RACED = {"tune": ("grid",)}
CONVEX = {"radius": (3.0,), "accuracy": (0.5,)}
PRIMAL_DUAL = {"balance": (0.5,), "scale": (0.5,), **RACED, **JUDGED}

OWNED: dict[str, dict[str, tuple[Any, ...]]] = {
    "cross-apapc": REALIZED,
    "joint-apapc": {
        "realization": ("averaged", "canonical"),
        "eta": (1.0,),
        "interval": ("tight", "minimal"),
        **JUDGED,
    },
    "cross-cg": {"sketch": (3,), **JUDGED},
    "cross-direct": {},
    "cross-ipm": CONVEX,
    "cross-lbfgs": JUDGED,
    "cross-continuation": {"schedule": ("practical",), **CONVEX, **REALIZED},
    "cross-sliding": {"schedule": ("practical",), **CONVEX, **REALIZED},
    "coupled-yarmoshik": {**REDUCED, **JUDGED},
    "mixed-yarmoshik": {"reduction": ("R2", "R3"), **JUDGED},
    "dpmm": {"penalty": (0.3,), "proximal": (0.1,), **REDUCED, **RACED, **JUDGED},
    "tracking-admm": {"penalty": (0.3,), **REDUCED, **RACED, **JUDGED},
    "condat-vu": PRIMAL_DUAL,
    "pdhg": PRIMAL_DUAL,
    "papc": PRIMAL_DUAL,
    "cross-newton": {"sketch": (2,), "reveal": ("sketch",)},
}
# What belongs to another realization or schedule than the default: taken together, refused alone.
OTHERS = ("rule", "delta", "interval", "model", "materialise", "spectra")
BESIDE: dict[str, tuple[str, ...]] = {
    "cross-apapc": OTHERS,
    "cross-continuation": (*OTHERS, "multiplier_budget"),
    "cross-sliding": (*OTHERS, "lipschitz"),
}

# Taken together with the realization that owns them.
TOGETHER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("cross-apapc", {"realization": "canonical", "inner": 8}),
    ("cross-apapc", {"realization": "canonical", "rule": "tight"}),
    ("cross-apapc", {"realization": "canonical", "model": "paper-6"}),
    ("cross-apapc", {"realization": "canonical", "interval": "minimal"}),
    ("cross-apapc", {"realization": "canonical", "delta": 0.3}),
    ("cross-apapc", {"realization": "canonical", "certificates": {"cross_factor": 9.0}}),
    ("cross-apapc", {"realization": "canonical", "materialise": True}),
    ("cross-apapc", {"realization": "certified", "inner": 8}),
    ("cross-apapc", {"realization": "certified", "delta": 0.3}),
    ("cross-apapc", {"realization": "certified", "materialise": True}),
    ("cross-apapc", {"realization": "stack", "rule": "tight"}),
    ("cross-apapc", {"realization": "stack", "delta": 0.3}),
    ("cross-apapc", {"realization": "stack", "interval": "minimal"}),
    ("cross-apapc", {"realization": "stack", "spectra": [(0.01, 9.0)] * 3}),
    ("cross-continuation", {"realization": "certified", "delta": 0.3}),
    ("cross-continuation", {"schedule": "certified", "radius": 3.0, "multiplier_budget": 2.0}),
    ("cross-sliding", {"realization": "canonical", "inner": 8}),
)
# Two names that do not go together, or a value of one that the other excludes.
APART: tuple[tuple[str, dict[str, Any], str], ...] = (
    *(
        ("cross-apapc", {"realization": where, name: value}, name)
        for where in ("canonical", "certified", "stack")
        for name, value in (("scale", 0.5), ("outer", 2))
    ),
    *(
        ("cross-apapc", {"realization": "certified", name: value}, name)
        for name, value in (("rule", "tight"), ("interval", "minimal"), ("model", "paper-6"))
    ),
    ("cross-apapc", {"realization": "averaged", "delta": 0.3}, "delta"),
    ("cross-apapc", {"realization": "averaged", "rule": "tight"}, "rule"),
    ("cross-apapc", {"realization": "averaged", "materialise": True}, "materialise"),
    ("cross-apapc", {"realization": "averaged", "interval": "tight"}, "interval"),
    ("cross-apapc", {"realization": "averaged", "model": "paper-6"}, "model"),
    ("cross-apapc", {"realization": "averaged", "spectra": [(1.0, 2.0)]}, "spectra"),
    ("cross-apapc", {"realization": "certified", "spectra": [(1.0, 2.0)]}, "spectra"),
    ("cross-apapc", {"realization": "stack", "materialise": True}, "materialise"),
    ("cross-apapc", {"realization": "stack", "inner": 3}, "inner"),
    ("cross-apapc", {"realization": "stack", "model": "paper-6"}, "model"),
    ("cross-apapc", {"realization": "canonical", "spectra": [(1.0, 2.0)]}, "spectra"),
    ("cross-apapc", {"realization": "canonical", "rule": "nonsense"}, "rule"),
    ("cross-apapc", {"realization": "canonical", "model": "nonsense"}, "model"),
    ("cross-apapc", {"realization": "certified", "delta": 2.0}, "delta"),
    ("cross-apapc", {"realization": "canonical", "delta": 2.0}, "delta"),
    ("cross-apapc", {"realization": "stack", "delta": 1.0}, "delta"),
    ("cross-apapc", {"certificates": {"cros_factor": 9.0}}, "cross_factor"),
    ("cross-apapc", {"certificates": {"cross_factor": -1.0}}, "cross_factor"),
    ("cross-apapc", {"certificates": 9.0}, "certificates"),
    ("joint-apapc", {"realization": "certified"}, "realization"),
    ("dpmm", {"tune": "grid", "penalty": 0.3}, "penalty"),
    ("tracking-admm", {"tune": "grid", "penalty": 0.3}, "penalty"),
    ("condat-vu", {"tune": "grid", "balance": 0.5}, "balance"),
    ("cross-continuation", {"schedule": "certified"}, "radius"),
    ("cross-continuation", {"schedule": "subgradient"}, "schedule"),
    ("cross-continuation", {"schedule": "practical", "multiplier_budget": 2.0}, "schedule"),
    ("cross-sliding", {"schedule": "certified"}, "radius"),
    ("cross-sliding", {"schedule": "practical", "lipschitz": 9.0}, "lipschitz"),
)

MISSPELLED = {
    "iner": ("inner", 3),
    "penatly": ("penalty", 5),
    "realisation": ("realization", "averaged"),
    "shedule": ("schedule", "practical"),
    "reductoin": ("reduction", "R1"),
    "tun": ("tune", "grid"),
    "balence": ("balance", 0.5),
    "raduis": ("radius", 3.0),
    "cross_factor": ("", 9.0),
    "degree_1": ("", 8),
    "pinned": ("", {"inner": 3}),
}
WRONG: tuple[tuple[str, Any], ...] = (
    ("realization", "nonsense"),
    ("schedule", "foo"),
    ("reduction", "R7"),
    ("tune", "everything"),
    ("inner", 0),
    ("inner", 2.5),
    ("inner", "three"),
    ("inner", True),
    ("outer", 0),
    ("outer", 1.5),
    ("scale", -1.0),
    ("scale", float("nan")),
    ("penalty", -1.0),
    ("penalty", "x"),
    ("penalty", float("inf")),
    ("proximal", -1.0),
    ("balance", 0.0),
    ("eta", -1.0),
    ("interval", "nonsense"),
    ("radius", -1.0),
    ("accuracy", 0.0),
)


@dataclass(frozen=True)
class Offer:
    """A method, what it is offered, and whether it must take it; ``named`` must be in a refusal."""

    method: str
    options: tuple[tuple[str, Any], ...]
    taken: bool
    named: str = ""

    @property
    def name(self) -> str:
        """Readable and unique."""
        return " ".join([self.method, *(f"{k}={v}" for k, v in self.options)])


def home(method: str, options: dict[str, Any]) -> Posed:
    """A problem that the method can take, with the options if they are right."""
    if options.get("realization") == "stack":
        return posed("stack")
    if method == "cross-newton":
        return posed("logistic")
    if method in ("cross-continuation", "cross-sliding"):
        return posed("flat" if method == "cross-continuation" else "absolute")
    reduced = options.get("reduction") in ("R2", "R3")
    if reduced:
        return posed("ridge")
    return posed("B-zero" if method == "mixed-yarmoshik" else "quadratic")


def offers() -> list[Offer]:
    """Every method with every name and value, right or wrong."""
    values: dict[str, Any] = {}
    for owned in OWNED.values():
        for name, known in owned.items():
            values.setdefault(name, known[0])
    made = []
    for method, owned in OWNED.items():
        for name, first in values.items():
            if name not in owned and name not in BESIDE.get(method, ()):
                made.append(Offer(method, ((name, first),), False, name))
            for value in owned.get(name, ()):
                made.append(Offer(method, ((name, value),), True))
        for name, (meant, value) in MISSPELLED.items():
            made.append(Offer(method, ((name, value),), False, meant if meant in owned else name))
        made += [Offer(method, (pair,), False, pair[0]) for pair in WRONG if pair[0] in owned]
        misplaced = [p for p in WRONG[:5] if p[0] not in owned]
        made += [Offer(method, (pair,), False, pair[0]) for pair in misplaced]
    made += [Offer(method, tuple(options.items()), True) for method, options in TOGETHER]
    made += [Offer(method, tuple(o.items()), False, named) for method, o, named in APART]
    return made
