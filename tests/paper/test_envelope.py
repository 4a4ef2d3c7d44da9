"""Two stacked channels: the envelope of their condition, and common equations left out of one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.angles.principal import weighted_extremes
from ccmac.errors import InputError
from ccmac.linalg.ranks import row_space
from ccmac.paper.deduplication import deduplicated
from ccmac.paper.envelope import condition_envelope, scalar_balance

positive = st.floats(1e-3, 1e3)


@settings(max_examples=30)
@given(theta=st.floats(1e-3, np.pi / 2), a=positive, b=positive)
def test_weighted_projectors(theta: float, a: float, b: float) -> None:
    """Lemma lem:weighted-projectors against the 2 x 2 matrix."""
    u = np.array([1.0, 0.0])
    v = np.array([np.cos(theta), np.sin(theta)])
    low, high = np.linalg.eigvalsh(a * np.outer(u, u) + b * np.outer(v, v))
    found = weighted_extremes(a, b, np.cos(theta), np.sin(theta))
    assert found[0] == pytest.approx(low, rel=1e-6, abs=1e-12 * (a + b))
    assert found[1] == pytest.approx(high, rel=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), eta=st.floats(0.05, 20), common=st.booleans())
def test_envelope_holds_in_both_branches(seed: int, eta: float, common: bool) -> None:
    """Theorem thm:angle, with and without an exact common direction."""
    rng = np.random.default_rng(seed)
    M_1 = rng.standard_normal((2, 8))
    M_2 = rng.standard_normal((3, 8))
    if common:
        M_2[0] = M_1[0] + 2 * M_1[1]
    singular = [np.linalg.svd(M, compute_uv=False) ** 2 for M in (M_1, M_2)]
    first, second = [(float(s[-1]), float(s[0])) for s in singular]
    Q_1 = row_space(M_1).basis
    Q_2 = row_space(M_2).basis
    cosines = np.linalg.svd(Q_1.T @ Q_2, compute_uv=False)
    c = float(cosines[1 if common else 0])
    lower, upper = condition_envelope(first, second, c, eta**2, common=common)
    stacked = np.linalg.svd(np.vstack([M_1, eta * M_2]), compute_uv=False) ** 2
    stacked = stacked[stacked > 1e-10 * stacked[0]]
    assert stacked[0] <= upper * (1 + 1e-9)
    assert stacked[-1] >= lower * (1 - 1e-9)


@settings(max_examples=30)
@given(
    mu_1=positive, k_1=st.floats(1, 100), mu_2=positive, k_2=st.floats(1, 100), c=st.floats(0, 0.99)
)
def test_scalar_balance_is_the_minimum(
    mu_1: float, k_1: float, mu_2: float, k_2: float, c: float
) -> None:
    first = (mu_1, k_1 * mu_1)
    second = (mu_2, k_2 * mu_2)
    best = scalar_balance(first, second)

    def ratio(balance: float) -> float:
        lower, upper = condition_envelope(first, second, c, balance)
        return upper / lower

    for factor in (0.3, 0.8, 0.99, 1.01, 1.3, 4.0):
        assert ratio(best) <= ratio(factor * best) * (1 + 1e-9)
    if c == 0:
        assert ratio(best) == pytest.approx(max(k_1, k_2), rel=1e-9)


def test_orthogonal_balance_attains_the_worse_condition() -> None:
    channels = ((2.0, 8.0), (1e-3, 1e-2))
    lower, upper = condition_envelope(*channels, 0.0, scalar_balance(*channels))
    assert upper / lower == pytest.approx(10.0, rel=1e-12)
    with pytest.raises(InputError, match="0 < mu <= L"):
        scalar_balance((2.0, 1.0), (1.0, 1.0))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_deduplication_keeps_the_feasible_set(seed: int) -> None:
    """Lemma lem:affine-dedup: same solutions, one direction fewer, R_2 acting on rows alone."""
    rng = np.random.default_rng(seed)
    M_1 = rng.standard_normal((3, 9))
    M_2 = rng.standard_normal((3, 9))
    M_2[0] = M_1[0] - M_1[2]
    x = rng.standard_normal(9)
    reduced = deduplicated(M_1, M_1 @ x, M_2, M_2 @ x)
    assert reduced.common.shape[1] == 1
    assert reduced.M_2.shape == (2, 9)
    np.testing.assert_allclose(reduced.R_2 @ M_2, reduced.M_2, atol=1e-9)
    full = np.vstack([M_1, M_2])
    less = np.vstack([reduced.M_1, reduced.M_2])
    P_full, P_less = (Q @ Q.T for Q in (row_space(full).basis, row_space(less).basis))
    np.testing.assert_allclose(P_full, P_less, atol=1e-9)
    np.testing.assert_allclose(less @ x, np.concatenate([reduced.v_1, reduced.v_2]), atol=1e-9)
    # A nearly common direction stays.
    M_2[0] += 1e-6 * rng.standard_normal(9)
    assert deduplicated(M_1, M_1 @ x, M_2, M_2 @ x).common.shape[1] == 0


def test_deduplication_refuses_an_inconsistent_pair() -> None:
    with pytest.raises(InputError, match="no common solution"):
        deduplicated([[1.0, 0.0]], [0.0], [[2.0, 0.0]], [1.0])
