"""Masked sums: exact cancellation, scales that are agreed upon, words that look like noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from ccmac.runtime.masked import Masked, Masks, as_floats, as_key

pytest.importorskip("cryptography")
N = 5


def masks() -> list[Masks]:
    """One set for each of N agents, introduced to each other."""
    found = [Masks(range(i, i + 1), N) for i in range(N)]
    keys = {i: as_key(np.array(as_floats(m.public()[i]))) for i, m in enumerate(found)}
    for m in found:
        m.meet(keys)
    return found


FINITE = np.zeros(2, dtype=bool)


def summed(scheme: Masked, parts: list[np.ndarray]) -> list[np.ndarray]:
    """A sum in one process, repeated until the scales fit."""
    runtime = ccmac.InProcess(ccmac.Network.ring(N), averaging=scheme)
    return scheme.pooled(runtime, parts, [])[0]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(-300, 300), st.integers(-30, 30))
def test_sums_are_right_to_the_rounding_that_is_told(seed: int, size: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((N, 3)) * 2.0**size, rng.standard_normal((N, 2)) * 2.0**spread]
    scheme = Masked(ccmac.Network.ring(N))
    totals = summed(scheme, parts)
    for k, (part, total) in enumerate(zip(parts, totals, strict=True)):
        error = math.ldexp(N, scheme.scales((3, 2))[k] - 2 * scheme.bits - 1)
        assert error <= scheme.grain
        for column, found in zip(part.T, total[0], strict=True):
            exact = sum(map(Fraction, column), start=Fraction(0))
            assert abs(Fraction(found) - exact) <= Fraction(error) + abs(exact) * Fraction(2) ** -51
        assert error <= np.abs(part).max() * 2.0**-106
        order = rng.permutation(N)
        again = scheme.sums((3, 2), scheme.words(parts, FINITE)[order], FINITE)
        assert again[k].tobytes() == total.tobytes()


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 100))
def test_what_cancels_is_not_lost(seed: int, digits: int) -> None:
    """Rows whose sum is far smaller than they are, and small rows where large ones have been."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, 4))
    rows[-1] = -rows[:-1].sum(axis=0)
    scheme = Masked(ccmac.Network.ring(N))
    summed(scheme, [rows])
    for part in (rows, rows * 2.0**-digits):
        [total] = summed(scheme, [part])
        for column, found in zip(part.T, total[0], strict=True):
            exact = sum(map(Fraction, column), start=Fraction(0))
            allowed = Fraction(scheme.grain) + abs(exact) * Fraction(2) ** -51
            assert abs(Fraction(found) - exact) <= allowed


def test_masks_cancel_and_a_row_alone_is_noise() -> None:
    scheme = Masked(ccmac.Network.ring(N))
    everybody = masks()
    parts = [np.arange(N * 4.0).reshape(N, 4)]
    summed(scheme, parts)
    words = scheme.words(parts, FINITE[:1])
    for _ in range(3):
        hidden = np.concatenate([m.hide(words[i : i + 1]) for i, m in enumerate(everybody)])
        assert not np.any(hidden == words)
        [got] = scheme.sums((4,), hidden, FINITE[:1])
        assert got.tolist() == [parts[0].sum(axis=0).tolist()]
    first, second = (m.hide(words[:1]) for m in (everybody[0], everybody[0]))
    assert not np.any(first == second)  # a fresh stream for every message
    # And after a restart: other keys.
    restarted = masks()[0]
    assert not np.any(restarted.hide(words[:1]) == masks()[0].hide(words[:1]))


def test_what_does_not_fit_is_said_and_never_wraps() -> None:
    scheme = Masked(ccmac.Network.ring(N))
    parts = [np.full((N, 1), 0.75)]
    assert summed(scheme, parts)[0].tolist() == [[0.75 * N]]
    assert scheme.repeated == 1  # the first of its layout
    assert summed(scheme, parts)[0].tolist() == [[0.75 * N]]
    assert scheme.repeated == 1
    parts[0][2] = 1e9
    assert summed(scheme, parts)[0].tolist() == [[1e9 + 3.0]]
    assert scheme.repeated == 2
    for value in (np.nan, -np.inf):
        parts[0][1] = value
        assert math.isnan(summed(scheme, parts)[0][0, 0])


def test_a_repeated_averaging_is_charged() -> None:
    network = ccmac.Network.ring(N)
    runtime = ccmac.InProcess(network, averaging="masked")
    runtime.average(np.ones((N, 3)))
    once = runtime.averaging.rounds
    assert runtime.ledger["rounds"] == 3 * once  # refused, the scales agreed upon, repeated
    runtime.average(np.ones((N, 3)))
    assert runtime.ledger["rounds"] == 4 * once
