"""The methods, the one driver that runs them, and the registry that names them.

    ccmac.solve(problem, network, ccmac.methods.CrossApapc(realization="certified"))

A method is a frozen dataclass of its options; ``ccmac.available_methods()`` lists them.
"""

from typing import Any

from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Iteration, Method, Prepared, Request, State
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import CrossDirect
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.newton.method import CrossNewton
from ccmac.methods.paper import CLASSES, imported
from ccmac.methods.realized import RealizedIteration
from ccmac.methods.registry import Auto
from ccmac.methods.sliding import CrossSliding
from ccmac.texts import misnamed

__all__ = [
    "Auto",
    "CrossApapc",
    "CrossCg",
    "CrossContinuation",
    "CrossDirect",
    "CrossIpm",
    "CrossLbfgs",
    "CrossNewton",
    "CrossSliding",
    "Iteration",
    "Method",
    "Prepared",
    "RealizedIteration",
    "Request",
    "State",
]
__all__ += list(CLASSES)


def __getattr__(name: str) -> Any:
    """The comparators of the paper, imported when they are first named."""
    if name in CLASSES:
        return imported(CLASSES[name])
    raise misnamed(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
