"""Contradictions inside one agent's rows, and what it takes to claim one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.infeasibility import PLAIN, doubted, proves
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import EPS_LONG, Long, dot, norm, product
from ccmac.linalg.ranks import RowSpace
from ccmac.linalg.tolerances import EPS

SEEN = 64 * EPS  # share of a right-hand side below which a misfit is rounding
PASSES = 2  # of sharpening: each gains the digits that the decompositions have


@dataclass(frozen=True)
class Contradiction:
    """lambda for M w = v: |lambda'v|, a lower bound of it, and an upper bound of ||M'lambda||."""

    price: Array
    value: float
    sure: float
    defect: float


def contradiction(block: Any, right: Array, space: RowSpace) -> Contradiction | None:
    """What of ``right`` lies outside the range, as a multiplier of rows; None if it is rounding."""
    unit = space.inverse_lengths * right
    zero = space.inverse_lengths == 0
    if np.any(zero & (right != 0)):  # 0 = right
        price = np.where(zero & (np.abs(right) == np.abs(right[zero]).max()), np.sign(right), 0.0)
        value = float(np.abs(price) @ np.abs(right))
        return Contradiction(price, value, value, 0.0)
    gap = unit - space.left @ (space.left.T @ unit)
    gap -= space.left @ (space.left.T @ gap)
    length = float(np.linalg.norm(gap))
    rounding = SEEN * math.sqrt(len(gap)) * float(np.linalg.norm(unit))
    if length <= min(rounding, PLAIN):
        return None
    matrix = dense(block)
    price = space.inverse_lengths * gap / length
    more = sharpened(space, matrix, product(matrix.T, price))
    return _weighed(matrix, right, (price + more).astype(np.float64))


def sharpened(space: RowSpace, matrix: Array, image: Long, passes: int = PASSES) -> Long:
    """kappa with M'kappa = -``image`` in Range(M'); more passes leave less to rounding."""
    kappa: Long = np.zeros(len(matrix), dtype=np.longdouble)
    for _ in range(passes):
        left = (image + product(matrix.T, kappa)).astype(np.float64)
        kappa = kappa - space.multipliers(space.basis.T @ left)
    return kappa


def _weighed(matrix: Array, right: Array, price: Array) -> Contradiction:
    """Value (towards zero) and defect, rounding against the claim."""
    noise = (len(price) + 2) * EPS_LONG * float(np.abs(price) @ np.abs(right))
    value = abs(float(dot(right, price)[0])) * (1 - 4 * EPS)
    return Contradiction(price, value, value - noise, defect_of([(matrix, price)]))


def defect_of(pairs: list[tuple[Any, Array]]) -> float:
    """||sum M'price|| at most."""
    total = sum(product(matrix.T, price) for matrix, price in pairs)
    spread = sum(norm(np.abs(matrix).T @ np.abs(price)) for matrix, price in pairs)
    return norm(total) + (sum(len(price) for _, price in pairs) + 2) * EPS_LONG * spread


def of_rows(block: Any, right: Array, space: RowSpace) -> tuple[float, float, Contradiction | None]:
    """(value, defect, contradiction) of one that is claimed; else (- its value, defect, None) where
    there is doubt, or (0, condition of the rows, None).
    """
    seen = contradiction(block, right, space)
    if seen is not None:
        size = float(np.linalg.norm(space.coordinates(right)))
        sure = seen.sure - 4 * EPS * float(np.abs(seen.price) @ np.abs(right))
        if proves(sure, seen.defect, size):
            return seen.value, seen.defect, seen
        if doubted(sure, seen.defect, size):
            return -seen.value, seen.defect, None
    return 0.0, space.condition, None
