"""All families by name."""

from __future__ import annotations

from adversarial import corners, families, forms, infeasible, special
from adversarial.draft import Case

CONSISTENT = tuple(families.GENERATORS)
CONTRADICTORY = tuple(infeasible.GENERATORS)
FAMILIES = (*CONSISTENT, *CONTRADICTORY)
MODULES = (families, special, corners, forms, infeasible)


def make(family: str, seed: int) -> Case:
    """The case ``seed`` of any family."""
    source = infeasible if family in infeasible.GENERATORS else families
    return source.make(family, seed)
