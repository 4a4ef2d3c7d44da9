"""Objectives f_i(x_i, z)."""

from ccmac.objectives.base import Curvature, FusedGradient, Objective
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable, SquaredDistance

__all__ = ["Curvature", "FusedGradient", "Objective", "Quadratic", "Separable", "SquaredDistance"]
