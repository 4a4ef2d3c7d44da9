"""Which method takes which option, with which values; and names and values that nobody takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pins.problems import Posed, posed

PLANNED = {
    "scale": (0.5,), "normalizer": ("semi-iteration", "deflation"), "inner": (3,), "outer": (2,),
    "lanczos": (2,), "floor": (0.1,),
}  # fmt: skip
REDUCED = {"reduction": ("R1", "R2", "R3")}
RACED = {"tune": ("grid",)}
CONVEX = {"radius": (3.0,), "accuracy": (0.5,)}

# Options of their own. What the averaged realization of the certificates takes (PLANNED) is left
# open for methods that only borrow it.
OWNED: dict[str, dict[str, tuple[Any, ...]]] = {
    "cross-apapc": {
        "realization": ("averaged", "canonical", "certified"), "access": ("factor", "matvec"),
        **PLANNED,
    },
    "joint-apapc": {
        "realization": ("averaged", "canonical"), "eta": (1.0,), "cross_factor": (9.0,),
        "interval": ("tight", "minimal", "certificate"),
    },
    "cross-cg": {},
    "cross-lbfgs": {},
    "cross-continuation": {
        "realization": ("averaged", "canonical", "certified"), "access": ("factor", "matvec"),
        "schedule": ("practical",), "opening": (False,), "augmentation": (True,), **CONVEX,
        **PLANNED,
    },
    "cross-sliding": {
        "realization": ("averaged", "canonical", "certified"), "access": ("factor", "matvec"),
        "schedule": ("practical", "subgradient"), **CONVEX, **PLANNED,
    },
    "coupled-yarmoshik": REDUCED,
    "mixed-yarmoshik": {"reduction": ("R2", "R3")},
    "dpmm": {"penalty": (0.3,), "proximal": (0.1,), **REDUCED, **RACED},
    "tracking-admm": {"penalty": (0.3,), **REDUCED, **RACED},
    "condat-vu": {"balance": (0.5,), "scale": (0.5,), **RACED},
    "pdhg": {"balance": (0.5,), "scale": (0.5,), **RACED},
    "papc": {"balance": (0.5,), "scale": (0.5,), **RACED},
}  # fmt: skip

# Taken together with the realization that owns them.
TOGETHER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("cross-apapc", {"realization": "canonical", "degree_1": 8}),
    ("cross-apapc", {"realization": "canonical", "rule": "tight"}),
    ("cross-apapc", {"realization": "canonical", "model": "paper-6"}),
    ("cross-apapc", {"realization": "canonical", "interval": "minimal"}),
    ("cross-apapc", {"realization": "canonical", "accuracy": 0.3}),
    ("cross-apapc", {"realization": "canonical", "cross_factor": 9.0}),
    ("cross-apapc", {"realization": "canonical", "materialise": True}),
    ("cross-apapc", {"realization": "certified", "delta": 0.3}),
    ("cross-apapc", {"realization": "certified", "materialise": True}),
    ("cross-continuation", {"realization": "certified", "delta": 0.3}),
    ("cross-continuation", {"schedule": "certified", "radius": 3.0, "multiplier_budget": 2.0}),
    ("cross-sliding", {"realization": "canonical", "degree_1": 8}),
)
# Two names that do not go together, or a value of one that the other excludes.
APART: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("cross-apapc", {"realization": "canonical", "inner": 3}, "inner"),
    ("cross-apapc", {"realization": "canonical", "delta": 0.3}, "delta"),
    ("cross-apapc", {"realization": "certified", "degree_1": 8}, "degree_1"),
    ("cross-apapc", {"realization": "averaged", "degree_1": 8}, "degree_1"),
    ("cross-apapc", {"realization": "averaged", "delta": 0.3}, "delta"),
    ("cross-apapc", {"realization": "canonical", "access": "matvec"}, "access"),
    ("cross-apapc", {"realization": "canonical", "rule": "nonsense"}, "rule"),
    ("cross-apapc", {"realization": "canonical", "model": "nonsense"}, "model"),
    ("cross-apapc", {"realization": "certified", "delta": 2.0}, "delta"),
    ("joint-apapc", {"realization": "certified"}, "realization"),
    ("cross-continuation", {"schedule": "certified"}, "radius"),
    ("cross-continuation", {"schedule": "subgradient"}, "schedule"),
    ("cross-sliding", {"schedule": "certified"}, "radius"),
)

MISSPELLED = {
    "iner": ("inner", 3), "penatly": ("penalty", 5), "realisation": ("realization", "averaged"),
    "shedule": ("schedule", "practical"), "reductoin": ("reduction", "R1"), "tun": ("tune", "grid"),
    "normaliser": ("normalizer", "deflation"), "balence": ("balance", 0.5),
    "acess": ("access", "factor"), "raduis": ("radius", 3.0),
}  # fmt: skip
WRONG: tuple[tuple[str, Any], ...] = (
    ("realization", "nonsense"), ("schedule", "foo"), ("reduction", "R7"), ("tune", "everything"),
    ("access", "matvex"), ("normalizer", "deflaton"), ("inner", 0), ("inner", 2.5),
    ("inner", "three"), ("outer", 0), ("outer", 1.5), ("scale", -1.0), ("penalty", -1.0),
    ("penalty", "x"), ("proximal", -1.0), ("balance", 0.0), ("eta", -1.0), ("interval", "nonsense"),
    ("radius", -1.0), ("accuracy", 0.0), ("lanczos", 0), ("opening", "no"),
)  # fmt: skip
LEFT_OPEN = {
    name: set(PLANNED)
    for name in ("cross-cg", "cross-lbfgs", "coupled-yarmoshik", "mixed-yarmoshik", "dpmm",
                 "tracking-admm")
} | {name: {"lanczos", "floor"} for name in ("condat-vu", "pdhg", "papc")}  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """A method, what it is offered, and whether it must take it; ``named`` must be in a refusal."""

    method: str
    options: tuple[tuple[str, Any], ...]
    taken: bool
    named: str = ""

    @property
    def name(self) -> str:
        """Readable, and the key in the list of what is wrong."""
        return " ".join([self.method, *(f"{k}={v}" for k, v in self.options)])


def home(method: str, options: dict[str, Any]) -> Posed:
    """A problem that the method can take, with the options if they are right."""
    if method in ("cross-continuation", "cross-sliding"):
        return posed("flat" if method == "cross-continuation" else "absolute")
    reduced = options.get("reduction") in ("R2", "R3")
    if reduced:
        return posed("ridge")
    return posed("B-zero" if method == "mixed-yarmoshik" else "quadratic")


def offers() -> list[Offer]:
    """Every method with every name and value, right or wrong."""
    values: dict[str, dict[Any, None]] = {}
    for owned in OWNED.values():
        for name, known in owned.items():
            values.setdefault(name, {}).update(dict.fromkeys(known))
    made = []
    for method, owned in OWNED.items():
        skipped = LEFT_OPEN.get(method, set())
        for name, known in values.items():
            if name not in owned and name not in skipped:
                first = next(iter(known))
                made.append(Offer(method, ((name, first),), False, name))
                if name == "access":
                    made.append(Offer(method, ((name, "matvec"),), False, name))
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
