"""Equations told of an agent's own rows alone: the same equations, fewer floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from ccmac import Network
from ccmac.methods.base import Request
from ccmac.methods.registry import parse
from ccmac.methods.run import starting_point
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.coupling import Packing, bits, words
from workspace.sparse_coupling import sparse_coupling

LOCAL = sparse_coupling(2, 8, m=64)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 130))
@settings(max_examples=40)
def test_words_say_every_bit(seed: int, count: int, width: int) -> None:
    rows = np.random.default_rng(seed).random((count, width)) < 0.5
    told = words(rows)
    assert told.shape[1] == -(-width // 48)
    assert np.array_equal(bits(told, width), rows)


@pytest.mark.parametrize("stray", [False, True])
@pytest.mark.parametrize("averaging", ["relay", "tree"])
def test_the_same_equations_in_fewer_floats(averaging: str, stray: bool) -> None:
    problem = sparse_coupling(1, 6, stray=stray)
    work = Workspace(problem, InProcess(Network.ring(6), averaging=averaging))
    assert work.supports is not None
    there = [np.asarray(abs(a.B)).any(axis=1) for a in problem.agents.values()]
    assert np.array_equal(work.supports, there)
    runtime = InProcess(Network.ring(6), averaging=averaging)
    whole = Constraints(problem, runtime, work.curvature, work.kernels)
    before = work.ledger.of("setup")
    packed = work.gather_constraints()
    assert packed is not None
    assert packed.rank == whole.rank
    for name in ("Bbar", "size_B", "beta", "size_b", "unit", "D", "e"):
        assert np.array_equal(getattr(packed, name), getattr(whole, name)), name
    assert np.allclose(packed.sigma, whole.sigma, rtol=1e-12)
    told = work.ledger.of("setup") - before
    assert told["averagings"] == 1 + stray
    assert told["bytes"] < 0.4 * runtime.ledger["bytes"] or stray


def test_dense_rows_and_few_rows_are_told_as_they_are() -> None:
    assert Workspace(sparse_coupling(1, 6, m=20), InProcess(Network.ring(6))).supports is None
    assert Workspace(sparse_coupling(1, 3), InProcess(Network.ring(3))).supports is None


def test_packed_arrays_come_back() -> None:
    random = np.random.default_rng(0)
    supports = random.random((4, 50)) < 0.3
    packing = Packing(supports, 4, 50)
    values = random.standard_normal((4, 50, 2)) * supports[:, :, None]
    told = np.stack([packing.packed(values[i], i) for i in range(4)])
    assert told.shape == (4, 2 * supports.sum(axis=1).max())
    assert np.array_equal(packing.unpacked(told, 2), values)
    assert packing.outside(np.ones(50), 0)
    assert not packing.outside(supports[0].astype(float), 0)


@pytest.mark.parametrize("stray", [False, True])
def test_solved_like_the_dense_system(stray: bool) -> None:
    """Against the KKT system of all agents together."""
    problem = sparse_coupling(2, 6, stray=stray)
    agents = list(problem.agents.values())
    d = 9
    q = 3
    size = 6 * d + q
    H = np.zeros((size, size))
    g = np.zeros(size)
    rows = [np.zeros((40, size))]
    right = [sum(a.b for a in agents)]
    for i, a in enumerate(agents):
        own = a.objective.quadratic(d, q)
        at = [*range(i * d, i * d + d), *range(6 * d, size)]
        H[np.ix_(at, at)] += own[0].toarray() if hasattr(own[0], "toarray") else own[0]
        g[at] += own[1]
        A = a.A.toarray() if hasattr(a.A, "toarray") else a.A
        rows[0][:, at] += np.hstack([A, a.B])
        local = np.zeros((1, size))
        local[:, i * d : i * d + d] = a.C
        rows.append(local)
        right.append(a.c)
    K = np.vstack(rows)
    kkt = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
    solved = np.linalg.lstsq(kkt, np.concatenate([g, *right]), rcond=None)[0]
    result = ccmac.solve(problem, Network.ring(6), tol=1e-8)
    assert result.status == "optimal"
    assert np.allclose(np.concatenate(result.x), solved[: 6 * d], atol=1e-7)
    assert np.allclose(result.z, solved[6 * d : size], atol=1e-7)


@pytest.mark.parametrize("method", ["cross-ipm", "cross-cg", "cross-apapc"])
def test_a_step_costs_what_it_declares(method: str) -> None:
    work = Workspace(LOCAL, InProcess(Network.ring(8), averaging="relay"))
    with work.ledger.phase("setup"):
        prepared = parse(method).prepare(work, Request(1e-6, *starting_point(work, None)))
    iteration = prepared.iteration
    state = iteration.step(iteration.start(np.zeros(72), np.zeros((8, 3))))
    before = work.ledger.of("solve")
    iteration.step(state)
    found = work.ledger.of("solve") - before  # of the longest message the first step's is kept
    assert {**found, "longest_message": 0} == {**iteration.cost, "longest_message": 0}
