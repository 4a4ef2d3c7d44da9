"""The arguments for the tolerances, in numbers: who changes one has an argument to change."""

from __future__ import annotations

import math

from ccmac.linalg import tolerances as t


def near(value: float, stated: float) -> bool:
    """Within two percent: what a sentence says."""
    return math.isclose(value, stated, rel_tol=0.02)


def test_ranks() -> None:
    assert t.EPS == 2.0**-52
    assert near(t.RANK, 4500 * t.EPS)
    assert near(math.sqrt(t.GRAM_RANK), 3.16e-6)
    assert t.UNEVEN**4 == 2.0**32
    assert near(t.CONSISTENCY, 1e3 * t.RANK)
    assert near(t.PROJECTOR, 45 * t.EPS)


def test_angles() -> None:
    assert near(t.OVERLAP**2, t.EPS**1.278)
    assert t.OVERLAP_NOISE == 100 * t.EPS
    assert near(t.LARGE_OVERLAP, math.sqrt(1e-9 * t.RITZ))
    assert t.ZERO_COSINE == 8 * t.EPS
    assert t.ORTHOGONAL == t.LSMR == t.WEIGHT_SUM == t.RANK
    assert near(t.VANISHED, 1e4 * t.RANK)
    assert near(t.FACTORED_SHIFT, 450 * t.EPS)
    assert near(t.FACTORED_TRIAL, 1e2 * t.FACTORED_SHIFT)


def test_lanczos() -> None:
    assert near(t.RITZ**2, 1e-10)
    assert near(t.RITZ_FLOOR, 10 * t.RITZ)
    assert near(t.FRESH, t.LSMR / 10)
    assert near(t.DRIFT, 1e3 * t.FRESH)
    assert t.DEPENDENT == t.KERNEL == t.DRIFT
    assert t.SWAMPED == t.BREAKDOWN
    assert near(t.BREAKDOWN**2, 1e-18)
    assert near(math.sqrt(t.EPS), 1.49 * t.BREAKDOWN_PARTIAL)
    assert t.REORTHOGONAL == t.LANCZOS_LOW_RESIDUAL == 0.01
    assert t.LANCZOS_LOW == t.LARGE_OVERLAP


def test_spectra_products_and_polynomials() -> None:
    assert near(t.EXTREME_MARGIN**2, t.ADJOINT)
    assert t.DENSE_MARGIN == t.DEPENDENT
    assert t.EXTREME_ZERO == t.FACTORED_SHIFT
    assert near(t.ADJOINT, 4500 * t.EPS)
    assert t.STAGNATION == t.DEGREE_SLACK == t.BREAKDOWN
    assert t.POINT == t.RANK
    missed = (math.pi / 128) ** 2 / 2  # of an oscillation, between 64 points
    assert 3 * missed < t.GRID_SLACK < 4 * missed
    assert near(t.GRID_ROUNDING, 45 * t.EPS)
