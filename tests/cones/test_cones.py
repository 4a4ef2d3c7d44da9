"""Laws of the cones: scaling, product, step length and margin, on random points inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.cones import Nonnegative, SecondOrder, Zero
from ccmac.cones.product import ProductCone
from ccmac.errors import InputError
from ccmac.inputs import Array

LISTS = st.lists(
    st.one_of(
        st.builds(Zero, st.integers(1, 3)),
        st.builds(Nonnegative, st.integers(1, 4)),
        st.builds(SecondOrder, st.integers(1, 5)),
    ),
    min_size=1,
    max_size=5,
)
SEEDS = st.integers(0, 2**31)


def inside(cone: ProductCone, random: np.random.Generator) -> Array:
    """A point inside; 0 in equations."""
    v = cone.inside_dual(random.standard_normal(cone.size))
    return np.where(cone.equations, 0.0, v + random.uniform(0.1, 2.0) * cone.identity)


@given(LISTS, SEEDS)
@settings(max_examples=60, deadline=None)
def test_the_scaling_brings_both_points_together(cones: list[object], seed: int) -> None:
    random = np.random.default_rng(seed)
    cone = ProductCone(cones)  # type: ignore[arg-type]
    s = inside(cone, random)
    v = inside(cone, random)
    W = cone.scaling(s, v)
    v = np.where(cone.equations, 0.0, v)
    size = 1e-9 * max(1.0, float(np.abs(s).max()), float(np.abs(v).max()))
    assert W.apply(v) == pytest.approx(W.point, abs=size)
    assert W.inverse(s) == pytest.approx(W.point, abs=size)
    matrix = W.inverse_matrix().toarray()
    free = ~cone.equations
    assert (matrix @ s)[free] == pytest.approx(W.point[free], abs=size)
    assert matrix == pytest.approx(matrix.T)


@given(LISTS, SEEDS)
@settings(max_examples=60, deadline=None)
def test_division_undoes_the_product(cones: list[object], seed: int) -> None:
    random = np.random.default_rng(seed)
    cone = ProductCone(cones)  # type: ignore[arg-type]
    W = cone.scaling(inside(cone, random), inside(cone, random))
    b = np.where(cone.equations, 0.0, random.standard_normal(cone.size))
    assert cone.product(W.point, W.divided(b)) == pytest.approx(b, abs=1e-9)
    assert cone.identity @ cone.identity == pytest.approx(cone.degree)


@given(LISTS, SEEDS)
@settings(max_examples=60, deadline=None)
def test_the_longest_step_ends_on_the_boundary(cones: list[object], seed: int) -> None:
    random = np.random.default_rng(seed)
    cone = ProductCone(cones)  # type: ignore[arg-type]
    s = inside(cone, random)
    step = np.where(cone.equations, 0.0, random.standard_normal(cone.size))
    length = cone.length(s, step)
    if np.isfinite(length):
        size = max(1.0, float(np.abs(s + length * step).max()))
        assert cone.margin(s + length * step) == pytest.approx(0.0, abs=1e-7 * size)
        assert cone.margin(s + 0.99 * length * step) > 0
    else:
        assert cone.margin(s + 1e3 * step) >= 0


def test_distances_outside_are_along_e() -> None:
    cone = ProductCone([Zero(1), Nonnegative(2), SecondOrder(3)])
    s = np.array([0.5, -1.0, 2.0, 1.0, 3.0, 4.0])
    assert cone.outside(s) == pytest.approx([0.5, 1.0, 0.0, 4.0, 4.0, 4.0])
    assert cone.inside_dual(s) == pytest.approx([0.5, 0.0, 2.0, 5.0, 3.0, 4.0])


def test_a_cone_without_entries_is_refused() -> None:
    with pytest.raises(InputError, match=">= 1"):
        SecondOrder(0)
