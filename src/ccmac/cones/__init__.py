"""The cones that slacks of an agent's own rows G x + H z + s = h may lie in."""

from ccmac.cones.base import Cone
from ccmac.cones.nonnegative import Nonnegative
from ccmac.cones.second_order import SecondOrder
from ccmac.cones.zero import Zero

__all__ = ["Cone", "Nonnegative", "SecondOrder", "Zero"]
