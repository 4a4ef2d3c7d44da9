"""The same objective with other targets or another linear term; curvature does not change."""

from __future__ import annotations

import copy
from typing import Any

from ccmac.errors import InputError
from ccmac.inputs import real_vector
from ccmac.objectives.base import Objective
from ccmac.objectives.basic import Centred
from ccmac.objectives.loss import Linear
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable


def with_targets(objective: Objective, y: Any) -> Objective:
    """Targets y: of a loss or least squares, or the centre of a distance; in a sum g(x) + h(z) of
    the part h where that has targets, else of g.
    """
    if isinstance(objective, Separable):
        for name, part in (("z", objective.z_part), ("x", objective.x_part)):
            if isinstance(part, Centred | Linear):
                return Separable(**{**objective.state(), name: with_targets(part, y)})
    if isinstance(objective, Centred | Linear):
        name = "centre" if isinstance(objective, Centred) else "y"
        return type(objective).from_state({**objective.state(), name: y})
    raise InputError(f"{type(objective).__name__} has no targets y; give g, or build a new problem")


def with_linear_term(objective: Objective, g: Any) -> Objective:
    """The same quadratic with another linear term g in u'Hu/2 - g'u."""
    if isinstance(objective, Quadratic):
        changed = copy.copy(objective)
        changed.g = real_vector("Quadratic, g", g)
        if len(changed.g) != len(objective.g):
            raise InputError(f"g: has {len(changed.g)} entries, not {len(objective.g)}")
        return changed
    raise InputError(f"{type(objective).__name__} has no linear term g; give y, or a new problem")
