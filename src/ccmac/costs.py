"""Unit prices of the resources, by which a plan is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ccmac.errors import InputError


@dataclass(frozen=True)
class Costs:
    """Price of one gradient, one block product (A, B, C or D) and one neighbor round."""

    gradient: float = 1.0
    product: float = 0.0
    round: float = 1.0

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if not (isinstance(price, int | float) and 0 <= price < float("inf")):
                raise InputError(f"costs: {name} = {price!r} must be a number >= 0")

    def bill(self, cost: Mapping[str, int]) -> float:
        """What a ledger cost amounts to."""
        products = sum(cost.get(unit, 0) for unit in "ABCD")
        return (
            self.gradient * (cost.get("gradients", 0) + cost.get("argmins", 0))
            + self.product * products
            + self.round * cost.get("rounds", 0)
        )
