"""The numbers of a certificate of infeasibility, in rational arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from adversarial.exact import Exact, column, norm, rational


def proof_numbers(exact: Exact, proof: Any) -> tuple[float, float, float]:
    """(lambda'v, ||K'lambda||, R): no (x, z) with norm below R satisfies the equations.

    Any solution u has lambda'v = lambda'Ku, hence ||u|| >= |lambda'v| / ||K'lambda||.
    """
    price = _multipliers(exact, proof)
    if price is None:
        return math.nan, math.nan, math.nan
    value, image = _images(exact, price)
    defect = norm(image)
    if not value:
        return 0.0, defect, 0.0
    return float(value), defect, abs(float(value)) / defect if defect else math.inf


def overstated(exact: Exact, proof: Any) -> bool:
    """Whether the radius of a certificate exceeds |lambda'v| / ||K'lambda||, in rationals."""
    price = _multipliers(exact, proof)
    if price is None:
        return True
    value, image = _images(exact, price)
    square = sum((v * v for v in image.entries()), fmpq(0))
    if math.isinf(proof.radius):
        return bool(square) or not value
    return bool(rational(proof.radius) ** 2 * square > value * value)


def _images(exact: Exact, price: fmpq_mat) -> tuple[fmpq, fmpq_mat]:
    """(lambda'v, K'lambda)."""
    pairs = zip(price.entries(), exact.h.entries(), strict=True)
    image = exact.G.transpose() * price if exact.size else fmpq_mat(0, 1)
    return sum((a * b for a, b in pairs), fmpq(0)), image


def _multipliers(exact: Exact, proof: Any) -> fmpq_mat | None:
    """lambda of a certificate; None if it is none."""
    draft = exact.draft
    parts = [np.asarray(proof.coupled, dtype=float).ravel()]
    for said, sides in ((proof.local, draft.c), (proof.shared, draft.e)):
        known = {int(i): np.asarray(v, dtype=float).ravel() for i, v in dict(said or {}).items()}
        parts += [known.get(i, np.zeros(len(side))) for i, side in enumerate(sides)]
    flat = np.concatenate(parts)
    sound = len(flat) == len(exact.kinds) and bool(np.isfinite(flat).all())
    return column(flat) if sound else None
