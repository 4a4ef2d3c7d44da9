"""What rounding may have added to the gradients of a problem in x alone."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from ccmac.certificates import explicit
from ccmac.certificates.explicit import ExplicitProof
from ccmac.linalg.extended import EPS_LONG
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import Logistic, Separable, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


def _vertical(seed: int) -> Any:
    """Columns of sizes 1e-3 to 1e3, weakly regularized; an agent without columns among them."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((30, 6)) * np.geomspace(1e-3, 1e3, 6)
    y = np.where(random.standard_normal(30) > 0, 1.0, -1.0)
    blocks = [X[:, :2], sp.csr_array(X[:, 2:]), None]
    return ccmac.Problem(
        [
            ccmac.Agent(
                Separable(x=SquaredDistance(1e-3), z=Logistic(y=y, weight=1 / 90)),
                A=block,
                B=-sp.eye_array(30) / 3,
                b=random.standard_normal(30),
            )
            for block in blocks
        ]
    )


def test_products_in_the_long_format_are_within_what_they_are_said_to_lose() -> None:
    """Against rational numbers; and much less is lost than in doubles."""
    problem = _vertical(3)
    work = Workspace(problem, InProcess(ccmac.Network.path(3)))
    assert work.gather_explicit() is not None
    proof = ExplicitProof(work, work.gather_explicit())
    x = np.random.default_rng(4).standard_normal(6) / np.geomspace(1e-3, 1e3, 6)
    lengths = np.array([np.linalg.norm(x[:2]), np.linalg.norm(x[2:]), 0.0])
    rows, sizes = proof._images(x, lengths, 10)
    dense = [np.asarray(problem.agents[0].A), problem.agents[1].A.toarray(), np.zeros((30, 0))]
    for k, (A, part) in enumerate(zip(dense, np.split(x, [2, 6]), strict=True)):
        exact = [
            sum(
                (Fraction(float(a)) * Fraction(float(v)) for a, v in zip(row, part, strict=True)),
                -Fraction(float(b)),
            )
            for row, b in zip(A, problem.agents[k].b, strict=True)
        ]
        off = math.sqrt(
            sum(float(Fraction(float(r)) - e) ** 2 for r, e in zip(rows[k], exact, strict=True))
        )
        assert off <= 10 * EPS * sizes[k]
    if EPS_LONG < EPS:
        assert sizes.sum() < 0.9 * proof._images(x, lengths, 0)[1].sum()
    price = np.random.default_rng(5).standard_normal(30)
    long = proof._gradients(x, price, True)
    plain = proof._gradients(x, price)
    assert np.array_equal(long[0], plain[0])
    np.testing.assert_allclose(long[1], plain[1], rtol=1e-10)


def test_a_point_that_lost_digits_is_refined_until_nothing_is_gained() -> None:
    """Bounds 8, 2, 1.9: the second refinement gains too little to go on; the least bound counts."""
    bounds = [8.0, 2.0, 1.9, 7.0]
    asked = []

    def at(x: Any, long: bool) -> explicit.Proved:
        asked.append((x, long))
        return explicit.Proved(x, x, bounds[len(asked) - 1], 0.0, 0.0, 1.0, *[x] * 3)

    part: Any = Fake(
        norm=3.0, explicit=Fake(beta=-4.0), mu=0.25, at=at, runtime=Fake(notes=Fake(led=False))
    )
    iteration: Any = Fake(point=lambda state: (0, None), finished=lambda state: state)
    stop = explicit.ExplicitStop(part, 0.1, lambda state, found: found.x + 1)
    found = stop.final(iteration, True)
    assert asked == [(0, False), (1, True), (2, True)]
    assert (found.bound, found.done) == (1.9, False)
    asked.clear()
    assert stop.final(iteration, False).bound == 8.0
    assert asked == [(0, False)]
    asked.clear()
    bounds[:] = [8.0, 0.05]
    assert stop.final(iteration, True).done
    assert asked == [(0, False), (1, True)]


def test_an_agent_that_no_coupled_row_holds_has_no_price() -> None:
    """Its gradient is that of g_i alone, in doubles and in the long format."""
    draw = np.random.default_rng(6).standard_normal
    y = np.where(draw(4) > 0, 1.0, -1.0)
    f = Separable(x=SquaredDistance(2.0, [1.0, -3.0]), z=Logistic(y=y, weight=0.25))
    A = draw((4, 2))
    B = -sp.eye_array(4) / 2
    agents = [ccmac.Agent(f, A=A, B=B, b=draw(4)), ccmac.Agent(f, B=B, b=draw(4))]
    work = Workspace(ccmac.Problem(agents), InProcess(ccmac.Network.path(2)))
    assert work.gather_explicit() is not None
    proof = ExplicitProof(work, work.gather_explicit())
    x = draw(4)
    price = draw(4)
    slope = 2 * x - np.array([2.0, -6.0, 2.0, -6.0])
    total = [slope[:2] + A.T @ price, slope[2:]]
    for long in (False, True):
        gradient, squares = proof._gradients(x, price, long)
        assert gradient == pytest.approx(slope)
        assert squares[:, 0] == pytest.approx([v @ v for v in total])
