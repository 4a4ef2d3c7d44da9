"""The objectives that a file may name. Nothing outside this table is ever built from a file.

A new objective joins by one line here; the tests then run over it as over all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ccmac.objectives.base import Objective
from ccmac.objectives.box import Box
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

KINDS: Mapping[str, type[Objective]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            Box,
            ElasticNet,
            Hinge,
            Huber,
            L1,
            LeastSquares,
            Logistic,
            MaxAffine,
            Quadratic,
            Ridge,
            Separable,
            SquaredDistance,
            Sum,
        )
    }
)
