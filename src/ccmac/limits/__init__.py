"""Inequalities and bounds, reduced to equations and objectives, and the way back."""

from ccmac.limits.reduction import Reduction

__all__ = ["Reduction"]
