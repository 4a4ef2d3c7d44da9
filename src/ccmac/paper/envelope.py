"""What an angle and two conditions say about two stacked channels (Theorem thm:angle).

mu_j and L_j are the extreme positive squared singular values of M_j, c the Friedrichs cosine of
their row spaces; the stack is [M_1; eta M_2], its weight eta^2 the ``balance``.
"""

from __future__ import annotations

import math

from ccmac.angles.principal import weighted_extremes
from ccmac.errors import InputError

Range = tuple[float, float]


def scalar_balance(first: Range, second: Range) -> float:
    """eta*^2 = sqrt(mu_1 L_1 / (mu_2 L_2)), the best weight for the envelope.

    Optimal without common directions; ``first`` and ``second`` are (mu_j, L_j).
    """
    _ordered(first, second)
    return math.sqrt(first[0] * first[1] / (second[0] * second[1]))


def condition_envelope(
    first: Range, second: Range, cosine: float, balance: float = 1.0, *, common: bool = False
) -> Range:
    """(delta, Lambda): bounds on the squared singular values of [M_1; eta M_2].

    The stack's condition is at most Lambda/delta. ``common`` says that the two row spaces share an
    exact direction, where the weights add up.
    """
    _ordered(first, second)
    if not 0 <= cosine < 1 or not balance > 0:
        raise InputError(
            f"envelope: need 0 <= cosine < 1 and balance > 0, got {cosine} and {balance}"
        )
    lower, _ = weighted_extremes(first[0], balance * second[0], cosine)
    _, upper = weighted_extremes(first[1], balance * second[1], 1.0 if common else cosine)
    return lower, upper


def _ordered(*ranges: Range) -> None:
    for mu, L in ranges:
        if not 0 < mu <= L:
            raise InputError(f"envelope: need 0 < mu <= L, got ({mu}, {L})")
