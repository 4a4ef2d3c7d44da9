"""Decentralized convex optimization with cross-coupled mixed affine constraints."""

from ccmac import objectives, vfl
from ccmac.api import plan, solve
from ccmac.costs import Costs
from ccmac.methods import methods
from ccmac.network import Network
from ccmac.pipeline.certificates import Certificates
from ccmac.pipeline.geometry import geometry
from ccmac.pipeline.stack import Stack
from ccmac.problem import Agent, Problem
from ccmac.results import Result, Solution
from ccmac.version import __version__

__all__ = [
    "Agent",
    "Certificates",
    "Costs",
    "Network",
    "Problem",
    "Result",
    "Solution",
    "Stack",
    "__version__",
    "geometry",
    "methods",
    "objectives",
    "plan",
    "solve",
    "vfl",
]
