"""Products with the agents' own blocks: dot-tests, and bits that do not depend on the company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ccmac.ledger import Ledger
from ccmac.linalg.blocks import LocalFamily

ROWS = 7


def _block(kind: str, columns: int, rng: np.random.Generator) -> Any:
    if kind == "absent":
        return None
    if kind == "identity":
        return sp.csr_array(rng.uniform(0.5, 2.0) * sp.eye_array(ROWS))
    dense = rng.standard_normal((ROWS, columns)) * 10.0 ** rng.integers(-8, 8, (ROWS, columns))
    if kind == "dense":
        return np.asfortranarray(dense) if rng.random() < 0.5 else dense
    if kind == "sparse":
        return sp.csr_array(dense * (rng.random(dense.shape) < 0.5))
    return sp.linalg.aslinearoperator(dense)


@st.composite
def families(draw: st.DrawFn) -> tuple[list[Any], list[int], int]:
    kind = draw(st.sampled_from(["identity", "dense", "sparse", "operator", "mixed", "square"]))
    count = draw(st.integers(1, 5))
    square = kind in ("identity", "square")
    sizes = [ROWS if square else draw(st.integers(1, 9)) for _ in range(count)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = ["absent", "dense", "sparse", "operator"] if kind == "mixed" else [kind, kind, "absent"]
    if kind == "square":
        kinds = ["identity", "sparse", "dense", "absent"]
    if kind == "dense":
        sizes = [sizes[0]] * count
        kinds = [kind]
    blocks = [_block(draw(st.sampled_from(kinds)), c, rng) for c in sizes]
    return blocks, sizes, int(rng.integers(2**32))


def family(blocks: list[Any], sizes: list[int]) -> LocalFamily:
    return LocalFamily("A", blocks, [ROWS] * len(blocks), sizes, Ledger(), present=True)


@pytest.mark.parametrize("small", [False, True])
@given(case=families())
def test_a_block_has_the_same_bits_in_any_company(
    small: bool, case: tuple[list[Any], list[int], int]
) -> None:
    blocks, sizes, seed = case
    rng = np.random.default_rng(seed)
    u = [rng.standard_normal(c) for c in sizes]
    v = rng.standard_normal(ROWS)
    rows = rng.standard_normal((len(blocks), ROWS))
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(LocalFamily, "_small", False)
        whole = family(blocks, sizes)
        alone = [family([b], [c]) for b, c in zip(blocks, sizes, strict=True)]
        parts = [f.forward(w) for f, w in zip(alone, u, strict=True)]
        assert np.array_equal(whole.forward(np.concatenate(u)), np.concatenate(parts))
        parts = [f.adjoint(r) for f, r in zip(alone, rows, strict=True)]
        assert np.array_equal(whole.adjoint(rows), np.concatenate(parts))
        parts = [f.adjoint(v) for f in alone]
        assert np.array_equal(whole.adjoint_common(v), np.concatenate(parts))
        out = rows.copy()
        whole.add_forward(np.stack(u) if len(set(sizes)) == 1 else np.concatenate(u), 0.3, out)
        for row, before, f, w in zip(out, rows, alone, u, strict=True):
            expected = before[None].copy()
            f.add_forward(w[None], 0.3, expected)
            assert np.array_equal(row, expected[0])


@given(case=families())
def test_products_are_adjoint_and_charged_once(case: tuple[list[Any], list[int], int]) -> None:
    blocks, sizes, seed = case
    rng = np.random.default_rng(seed)
    f = family(blocks, sizes)
    u = rng.standard_normal(sum(sizes))
    v = rng.standard_normal(ROWS)
    rows = np.tile(v, len(blocks))
    image = f.forward(u)
    back = f.adjoint(rows)
    scale = np.linalg.norm(image) * np.linalg.norm(rows) + np.linalg.norm(u) * np.linalg.norm(back)
    assert abs(image @ rows - u @ back) <= 1e-14 * max(scale, 1e-300)
    assert f.ledger["A"] == 2
    size = np.abs(back).max(initial=1e-300)
    assert np.abs(f.adjoint_common(v) - back).max(initial=0.0) <= 1e-14 * size
    images = image.reshape(len(blocks), ROWS)
    f.add_forward(u.reshape(len(blocks), -1) if len(set(sizes)) == 1 else u, 2.0, images)
    assert f.ledger["A"] == 4


def test_empty_families_and_their_price() -> None:
    none = LocalFamily("C", [None, None], [2, 3], [3, 1], Ledger())
    assert none.empty
    assert (none.shape, dict(none.cost)) == ((5, 4), {})
    assert none.forward(np.ones(4)).tolist() == [0.0] * 5
    assert none.adjoint(np.ones(5)).tolist() == [0.0] * 4
    assert none.adjoint_common(np.ones(2)).tolist() == [0.0] * 4
    out = np.ones((2, 2))
    none.add_forward(np.ones(4), 3.0, out)
    assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert LocalFamily("C", [np.zeros((0, 2))], [0], [2], Ledger()).empty
    assert none.ledger["C"] == 0
    elsewhere = LocalFamily("C", [None], [2], [3], Ledger(), present=True)
    elsewhere.forward(np.ones(3))
    assert (elsewhere.ledger["C"], dict(elsewhere.cost)) == (1, {"C": 1})
    known = LocalFamily(
        "B", [None, None], [2, 2], [2, 2], Ledger(), present=True, multiples=np.array([2.0, 3.0])
    )
    assert known.forward(np.ones(4)).tolist() == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("sizes", [(2, 4), (0, 1), (1, 2)])
@pytest.mark.parametrize("sparse", [True, False])
def test_multiples_of_identities_of_different_sizes(sizes: tuple[int, int], sparse: bool) -> None:
    """They were taken for equally many entries of every agent."""
    wide = [2.0 * np.eye(sizes[0]), 3.0 * np.eye(sizes[1])]
    blocks = [sp.csr_array(block) if sparse else block for block in wide]
    family = LocalFamily("C", blocks, sizes, sizes, Ledger())
    u = np.arange(1.0, sum(sizes) + 1)
    expected = np.repeat([2.0, 3.0], sizes) * u
    assert np.array_equal(family.forward(u), expected)
    assert np.array_equal(family.adjoint(u), expected)
