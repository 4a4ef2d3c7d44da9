"""What :mod:`ccmac.paper` has and users find by name: comparators, realizations of the theory.

The one place where the library reaches into ``ccmac.paper``; a module is imported when its name is
first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

METHODS = {
    "joint-apapc": "comparators.joint_apapc:JointApapc",
    "coupled-yarmoshik": "comparators.coupled:CoupledYarmoshik",
    "mixed-yarmoshik": "comparators.mixed:MixedYarmoshik",
    "dpmm": "comparators.admm:Dpmm",
    "tracking-admm": "comparators.admm:TrackingAdmm",
    "condat-vu": "comparators.primal_dual:CondatVu",
    "pdhg": "comparators.primal_dual:Pdhg",
    "papc": "comparators.primal_dual:Papc",
}
REALIZATIONS = {
    "canonical": "realizations.canonical:canonical",
    "certified": "realizations.certified:certified",
    "stack": "realizations.stacked:stacked",
}
CLASSES = {place.partition(":")[2]: place for place in METHODS.values()}


def imported(place: str) -> Any:
    """The object at ``module:name`` below ``ccmac.paper``."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"ccmac.paper.{module}"), name)
