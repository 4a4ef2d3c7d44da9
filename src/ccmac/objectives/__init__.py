"""Objectives f_i(x_i, z)."""

from ccmac.objectives.base import Curvature, FusedGradient, Objective
from ccmac.objectives.box import Box
from ccmac.objectives.custom import Custom
from ccmac.objectives.function import Function
from ccmac.objectives.hinge import Hinge
from ccmac.objectives.huber import Huber
from ccmac.objectives.l1 import L1, ElasticNet
from ccmac.objectives.least_squares import LeastSquares, Ridge
from ccmac.objectives.logistic import Logistic
from ccmac.objectives.max_affine import MaxAffine
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.objectives.squared_distance import SquaredDistance
from ccmac.objectives.sum import Sum

__all__ = [
    "Box",
    "Curvature",
    "Custom",
    "ElasticNet",
    "Function",
    "FusedGradient",
    "Hinge",
    "Huber",
    "L1",
    "LeastSquares",
    "Logistic",
    "MaxAffine",
    "Objective",
    "Quadratic",
    "Ridge",
    "Separable",
    "SquaredDistance",
    "Sum",
]
