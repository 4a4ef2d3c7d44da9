"""The methods that cross-apapc is compared with, on the same interface."""

from ccmac.methods.comparators.admm import Dpmm, TrackingAdmm
from ccmac.methods.comparators.coupled import CoupledYarmoshik
from ccmac.methods.comparators.mixed import MixedYarmoshik
from ccmac.methods.comparators.primal_dual import CondatVu, Papc, Pdhg

__all__ = [
    "CondatVu", "CoupledYarmoshik", "Dpmm", "MixedYarmoshik", "Papc", "Pdhg", "TrackingAdmm",
]  # fmt: skip
