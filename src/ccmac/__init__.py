"""Decentralized convex optimization with cross-coupled mixed affine constraints."""

from ccmac import methods, objectives, vfl
from ccmac.angles.measure import geometry
from ccmac.api import plan, solve
from ccmac.ledger import Costs
from ccmac.methods.registry import available_methods
from ccmac.network import Network
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import Certificates
from ccmac.results import Result, Solution
from ccmac.runtime import InProcess
from ccmac.stack import Stack
from ccmac.version import __version__

__all__ = [
    "Agent",
    "Certificates",
    "Costs",
    "InProcess",
    "Network",
    "Problem",
    "Result",
    "Solution",
    "Stack",
    "__version__",
    "available_methods",
    "geometry",
    "methods",
    "objectives",
    "plan",
    "solve",
    "vfl",
]
