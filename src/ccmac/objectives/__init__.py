"""Objectives f_i(x_i, z)."""

from collections.abc import Mapping
from inspect import isabstract
from types import MappingProxyType
from typing import Any

from ccmac.objectives.base import Curvature, Function, Objective
from ccmac.objectives.basic import L1, Box, MaxAffine, SquaredDistance
from ccmac.objectives.concomitant import ConcomitantHuber
from ccmac.objectives.custom import Custom, named
from ccmac.objectives.deviance import Tweedie
from ccmac.objectives.intercept import Intercept
from ccmac.objectives.least_squares import LeastSquares, Ridge
from ccmac.objectives.loss import Hinge, Huber, Logistic, Pinball
from ccmac.objectives.multinomial import Multinomial
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.objectives.sets import Halfspace, Simplex
from ccmac.objectives.sum import ElasticNet, Limited, Sum
from ccmac.texts import misnamed

__all__ = [
    "Box",
    "ConcomitantHuber",
    "Curvature",
    "Custom",
    "ElasticNet",
    "Function",
    "Halfspace",
    "Hinge",
    "Huber",
    "Intercept",
    "KINDS",
    "L1",
    "LeastSquares",
    "Limited",
    "Logistic",
    "MaxAffine",
    "Multinomial",
    "Objective",
    "Pinball",
    "Quadratic",
    "Ridge",
    "Separable",
    "Simplex",
    "SquaredDistance",
    "Sum",
    "Tweedie",
    "named",
]

KINDS: Mapping[str, type[Objective]] = MappingProxyType(
    {
        name: kind
        for name, kind in vars().items()
        if isinstance(kind, type) and issubclass(kind, Objective) and not isabstract(kind)
    }
)
"""The objectives that a file may name: nothing outside this table is ever built from a file.

A new objective joins by its import here; the tests then run over it as over all others.
"""


def __getattr__(name: str) -> Any:
    raise misnamed(__name__, name, __all__)
