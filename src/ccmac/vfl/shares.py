"""The shares alpha_i of the coupling, sum_i (X_i w_i - alpha_i p) = 0 with sum_i alpha_i = 1.

They change the geometry (chi) and nothing else: with N > d, chi^2 = (1 + c)/(1 - c) for
c = ||alpha - 1/n|| / ||alpha||, so that equal shares are best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmac.angles.principal import friedrichs_cosine
from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, number, real_vector, whole
from ccmac.texts import shown

ZERO_SUM_SEED = 307


def cross_factor_weights(n: int, chi: float, seed: int = ZERO_SUM_SEED) -> Array:
    """alpha = 1/n + c/sqrt(n(1-c^2)) v with a unit zero-sum v, c = (chi^2-1)/(chi^2+1).

    Parameters
    ----------
    n : int
        Number of parties.
    chi : float
        The cross factor wanted, at least 1.
    seed : int
        Of the direction.

    Returns
    -------
    ndarray
        Shares that sum to one.

    Examples
    --------
    >>> import ccmac
    >>> round(float(ccmac.vfl.cross_factor_weights(4, 3.0).sum()), 9)
    1.0
    """
    whole("vfl: the number of parties", n, 1)
    if number("vfl: cross factor", chi) < 1:
        raise InputError(f"vfl: cross factor {chi} is below 1, the smallest there is")
    if n == 1 or chi == 1:
        return np.full(n, 1.0 / n)
    c = friedrichs_cosine(chi)
    v = np.random.default_rng(whole("vfl: seed", seed)).standard_normal(n)
    v -= v.mean()
    v /= np.linalg.norm(v)
    return np.asarray(1.0 / n + c / np.sqrt(n * (1 - c * c)) * v)


def shares_of(asked: Any, blocks: Sequence[Any]) -> Array:
    """None (equal), numbers that sum to one, ("cross_factor", chi) or "feature-norm"."""
    n = len(blocks)
    if asked is None:
        return np.full(n, 1.0 / n)
    if isinstance(asked, str):
        if asked != "feature-norm":
            raise InputError(
                f"vfl: shares = {shown(asked)} is unknown; take 'feature-norm' or numbers"
            )
        squares = [np.sum((b.data if is_sparse(b) else b) ** 2) for b in blocks]
        norms = np.sqrt(squares)
        return np.asarray(norms / norms.sum())
    if isinstance(asked, tuple) and len(asked) == 2 and asked[0] == "cross_factor":
        return cross_factor_weights(n, number("vfl, shares, cross factor", asked[1]))
    values = real_vector("vfl: shares", asked)
    if values.shape != (n,) or not np.isclose(values.sum(), 1.0):
        raise InputError(f"vfl: shares: give {n} numbers, one for each party, that sum to one")
    return values
