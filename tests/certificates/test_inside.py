"""The curvature on the kernel of all equations: what an agent tells of it, and the bound."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import inside
from ccmac.certificates.inside import inner_bound, told
from ccmac.linalg.ranks import row_space
from ccmac.linalg.tolerances import EPS
from ccmac.workspace.declared import SOLVES
from ccmac.workspace.local import Kernel
from ccmac.workspace.summed import LocalModel


def test_an_agents_numbers_in_closed_form() -> None:
    """H = [4 2; 2 3], R = 5: P^{-1} H_xz = 1/2, P^{-1} R' = 5/4."""
    H = np.array([[4.0, 2.0], [2.0, 3.0]])
    kernel = Kernel.of(row_space(np.zeros((0, 1))), np.zeros(1))
    model = LocalModel(H, np.zeros(2), kernel, np.array([[5.0]]))
    unit = 24 * EPS
    size = math.sqrt(33.0)
    off = SOLVES * EPS + unit
    expected = [
        4.0,
        0.25,
        off * 2 * 0.5 + unit * size,
        off * 5 * 1.25,
        off * 5 * 0.5,
        2 * unit * size,
        model.flat.kept,
        model.flat.dropped,
        3.0,
    ]
    said = told(model, H, 1)
    assert said == pytest.approx(expected, rel=1e-9, abs=0.0)
    assert said[0] < 4.0  # rounding taken off, not added
    assert said[1] > 0.25


@pytest.mark.parametrize("kept", [2, 0])
def test_an_agents_numbers_in_several_variables(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any model: two directions that bend or none, three that all solve for, two rows."""
    unit = 2.0**-12
    monkeypatch.setattr(inside, "EPS", unit)
    draw = np.random.default_rng(3).standard_normal
    d = 3
    q = 2
    rows = 2
    H = draw((d + q, d + q))
    H = H @ H.T
    model: Any = SimpleNamespace(
        N=np.linalg.qr(draw((d, 2)))[0][:, :kept],
        q=3,
        along=draw((d, 3)),
        H_zz=draw((3, 3)),
        solved=draw((kept, 3 + rows)),
        H_xz=draw((kept, 3)),
        rows=draw((rows, kept)),
        corner=draw((rows, 3)),
        flat=SimpleNamespace(kept=7.0, dropped=0.5),
    )
    rounding = 4 * (d + q + 4) * unit
    size = float(np.linalg.norm(H))
    p, kappa = inside._least(model.N.T @ H[:d, :d] @ model.N, rounding)
    off = SOLVES * max(1, kept) * kappa * unit + rounding
    t, back = (float(np.linalg.norm(v)) for v in (model.solved[:, :3], model.solved[:, 3:]))
    Q = float(np.linalg.norm(model.H_xz))
    R = float(np.linalg.norm(model.rows))
    expected = [
        p,
        (t * (1 + off)) ** 2,
        off * Q * t + rounding * size,
        off * R * back,
        off * R * t + rounding * np.linalg.norm(model.corner),
        2 * (np.linalg.norm(H[:, :d] @ model.along) + rounding * size),
        7.0,
        0.5,
        np.linalg.norm(model.H_zz),
    ]
    assert told(model, H, d) == pytest.approx(expected)


@pytest.mark.parametrize(("r", "delta"), [(0.0, 0.0), (2.0, 0.0), (0.0, 3.0), (2.0, 3.0)])
def test_the_bound_in_closed_form(r: float, delta: float) -> None:
    """mu = 4, L = 9: b = r/2 + 3 delta, s from s^2 = b s + r delta (3/2 + 2)."""
    b = r / 2 + 3 * delta
    s = (b + math.sqrt(b * b + 14 * r * delta)) / 2
    along = min((s + 3 * delta) / 2, (r + 9 * delta) / 4)
    assert inner_bound(r, delta, 4.0, 9.0) == pytest.approx(math.hypot(delta, along), rel=1e-12)


@pytest.mark.parametrize("root", [1.0, 2.0, 0.5])
def test_the_better_of_two_bounds(root: float) -> None:
    """L = 1e4, r = 100, delta = 1: s^2 = (100 / root + 100) s + 100 (100 / root + 2)."""
    b = 100 / root + 100
    s = (b + math.sqrt(b**2 + 400 * (100 / root + 2))) / 2
    expected = math.hypot(1.0, (s + 100) / root)
    assert inner_bound(100.0, 1.0, root**2, 1e4) == pytest.approx(expected, rel=1e-12)


def test_the_bound_holds_on_random_quadratics() -> None:
    """min u'Hu/2 - g'u with K u = 0, H singular and definite on ker K."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        factor = random.standard_normal((3, 4))
        K = random.standard_normal((2, 4))
        H = factor.T @ factor
        g = random.standard_normal(4)
        N = np.linalg.svd(K)[2][2:].T
        mu = np.linalg.eigvalsh(N.T @ H @ N)[0]
        L = np.linalg.eigvalsh(H)[-1]
        exact = N @ np.linalg.solve(N.T @ H @ N, N.T @ g)
        point = exact + random.standard_normal(4) * 10.0 ** random.integers(-3, 2, size=4)
        across = np.linalg.pinv(K) @ K @ point
        r = float(np.linalg.norm(N.T @ (H @ point - g)))
        bound = inner_bound(r, float(np.linalg.norm(across)), float(mu), float(L))
        assert np.linalg.norm(point - exact) <= bound * (1 + 1e-9)
