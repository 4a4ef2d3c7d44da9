"""The cones that slacks of an agent's own rows G x + H z + s = h may lie in."""

from conic.cones.base import Cone
from conic.cones.nonnegative import Nonnegative
from conic.cones.product import ProductCone
from conic.cones.second_order import SecondOrder
from conic.cones.zero import Zero

__all__ = ["Cone", "Nonnegative", "ProductCone", "SecondOrder", "Zero"]
