"""The methods, the one driver that runs them, and the registry that names them.

    ccmac.solve(problem, network, ccmac.methods.CrossApapc(realization="certified"))

A method is a frozen dataclass of its options; ``ccmac.available_methods()`` lists them.
"""

from ccmac.methods.apapc import CrossApapc, JointApapc
from ccmac.methods.auto import Auto
from ccmac.methods.base import Iteration, Method, Prepared, Request, State
from ccmac.methods.cg import CrossCg
from ccmac.methods.comparators.admm import Dpmm, TrackingAdmm
from ccmac.methods.comparators.coupled import CoupledYarmoshik
from ccmac.methods.comparators.mixed import MixedYarmoshik
from ccmac.methods.comparators.primal_dual import CondatVu, Papc, Pdhg
from ccmac.methods.continuation.method import CrossContinuation
from ccmac.methods.direct import CrossDirect
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.newton.method import CrossNewton
from ccmac.methods.realized import RealizedIteration
from ccmac.methods.sliding.method import CrossSliding

__all__ = [
    "Auto",
    "CondatVu",
    "CoupledYarmoshik",
    "CrossApapc",
    "CrossCg",
    "CrossContinuation",
    "CrossDirect",
    "CrossIpm",
    "CrossLbfgs",
    "CrossNewton",
    "CrossSliding",
    "Dpmm",
    "Iteration",
    "JointApapc",
    "Method",
    "MixedYarmoshik",
    "Papc",
    "Pdhg",
    "Prepared",
    "RealizedIteration",
    "Request",
    "State",
    "TrackingAdmm",
]
