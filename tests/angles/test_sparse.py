"""Angles by Lanczos on projections against dense decompositions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac import Agent, Problem
from ccmac.angles.large import missed
from ccmac.angles.measure import geometry
from ccmac.objectives import Separable, SquaredDistance

OBJECTIVE = Separable(SquaredDistance(1.0), SquaredDistance(1.0))


def near(rng: np.random.Generator, rows: int, columns: int) -> sp.csr_array:
    """Rows that touch the columns near their own place on a line."""
    middle = np.linspace(0, columns - 1, rows).astype(int)
    place = middle[:, None] + np.array([-2, -1, 0, 1, 2])
    kept = (place >= 0) & (place < columns)
    row = np.broadcast_to(np.arange(rows)[:, None], place.shape)[kept]
    return sp.csr_array((rng.standard_normal(kept.sum()), (row, place[kept])), (rows, columns))


def problem(seed: int, *, local: int, shared: int, repeated: int = 0) -> Problem:
    """Three agents; ``repeated`` rows of the coupling say what D says already."""
    rng = np.random.default_rng(seed)
    agents = []
    for i in range(3):
        A = near(rng, 60, 20)
        B = near(rng, 60, 50)
        D = near(rng, shared, 50) if shared else None
        if repeated:
            A.data[A.indptr[0] : A.indptr[repeated]] = 0.0
            B = sp.vstack([D[:repeated] if i == 0 else sp.csr_array((repeated, 50)), B[repeated:]])
        C = near(rng, local, 20) if local else None
        agents.append(Agent(OBJECTIVE, A=A, B=sp.csr_array(B), C=C, D=D))
    return Problem(agents)


@pytest.mark.parametrize(
    ("local", "shared", "repeated"), [(0, 0, 0), (5, 0, 0), (0, 7, 0), (5, 7, 0), (5, 7, 3)]
)
def test_equals_the_dense_angles(local: int, shared: int, repeated: int) -> None:
    for seed in range(3):
        given = problem(seed, local=local, shared=shared, repeated=repeated)
        found, dense = (geometry(given, method=name) for name in ("sparse", "dense"))
        assert found.common_dimension == dense.common_dimension == (repeated or 0)
        assert found.cross_factor == pytest.approx(dense.cross_factor, rel=1e-7)
        assert found.rebalanced_cross_factor == pytest.approx(
            dense.rebalanced_cross_factor, rel=1e-6
        )
        np.testing.assert_allclose(found.agents, dense.agents, atol=1e-6)
        assert found.shared == pytest.approx(dense.shared, abs=1e-6)


def test_scales_of_rows_do_not_matter() -> None:
    given = problem(1, local=5, shared=7)
    scale = sp.diags_array(10.0 ** np.random.default_rng(2).integers(-6, 6, 60))
    scaled = Problem(
        [
            Agent(OBJECTIVE, A=scale @ a.A, B=scale @ a.B, C=1e5 * a.C, D=a.D)
            for a in given.agents.values()
        ]
    )
    chi = geometry(given, method="sparse").cross_factor
    assert geometry(scaled, method="sparse").cross_factor == pytest.approx(chi, rel=1e-7)


def test_an_interval_holds_chi_of_a_large_problem() -> None:
    given = problem(0, local=5, shared=7)
    exact = geometry(given, method="dense").cross_factor
    found = geometry(given, dense_limit=30)
    assert (found.method, found.rests_on) == ("sparse", "probable")
    assert found.interval is not None
    low, high = found.interval
    assert low * (1 - 1e-9) <= exact <= high <= 1.1 * exact
    assert low == pytest.approx(exact, rel=1e-6)
    assert found.as_dict()["interval"] == (low, high)


def test_what_lanczos_may_have_missed() -> None:
    eps = missed(60, 10_000)
    assert 1.648 * 100 * math.exp(-math.sqrt(eps) * 119) == pytest.approx(1e-6)
    assert missed(1, 10_000) == 1.0
