from . import cones, cvx, errors, methods, network, objectives, paper, power, runtime, storage, vfl
from .angles.measure import geometry
from .api import plan, solve
from .ledger import Costs
from .methods.registry import available_methods
from .network import Network
from .prepared import PreparedProblem, prepare
from .problem import Agent, Problem
from .realizations.base import Certificates
from .results import Result, Solution
from .runtime import InProcess
from .stack import Stack
from .version import __version__

__all__ = [
    "Agent",
    "Certificates",
    "Costs",
    "InProcess",
    "Network",
    "PreparedProblem",
    "Problem",
    "Result",
    "Solution",
    "Stack",
    "__version__",
    "available_methods",
    "cones",
    "cvx",
    "errors",
    "geometry",
    "paper",
    "methods",
    "network",
    "objectives",
    "plan",
    "power",
    "prepare",
    "runtime",
    "solve",
    "storage",
    "vfl",
]
