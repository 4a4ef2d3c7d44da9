"""Orders against values by hand, conditions against dense ones, the lift against the code."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg as sla

from ccmac import api, vfl
from ccmac.methods import CrossApapc
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.paper import complexity_spectra as spectra
from ccmac.paper.complexity import complexity
from ccmac.paper.instances import calibration, dispatch, random_quadratic
from ccmac.problem import Agent, Problem


def federated() -> tuple[Problem, Network]:
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 16))
    y = X @ random.standard_normal(16)
    return vfl.problem(X, y, 8, shares=("cross_factor", 2.0)), Network.ring(8)


CASES: dict[str, Callable[[], tuple[Problem, Network]]] = {
    "dispatch": lambda: (dispatch().problem, dispatch().network),
    "calibration": lambda: (calibration().problem, calibration().network),
    "random": lambda: (random_quadratic(3, 3), Network.path(3)),
    "federated": federated,
}


def reduced(problem: Problem, network: Network) -> list[np.ndarray]:
    """A'_i = [A_i B_i; 0 W_i (x) I; e_i (x) C_i 0; 0 e_i (x) D_i], written out."""
    W = network.weights.toarray()
    n = problem.n
    q = problem.q
    blocks = []
    for i, agent in problem.agents.items():
        d = problem.d[i]
        dense = {
            name: np.zeros((rows, columns)) if block is None else _entries(block)
            for name, block, rows, columns in (
                ("A", agent.A, problem.m, d),
                ("B", agent.B, problem.m, q),
                ("C", agent.C, 0, d),
                ("D", agent.D, 0, q),
            )
        }
        links = np.kron(W[:, [i]], np.eye(q))
        rows = [np.hstack([dense["A"], dense["B"]]), np.hstack([np.zeros((n * q, d)), links])]
        for j in range(n):
            for name, sizes in (("C", problem.p), ("D", problem.r)):
                own = dense[name] if j == i else np.zeros((sizes[j], dense[name].shape[1]))
                zero = np.zeros((len(own), q if name == "C" else d))
                rows.append(np.hstack([own, zero] if name == "C" else [zero, own]))
        blocks.append(np.vstack(rows))
    return blocks


def _entries(block: object) -> np.ndarray:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


@pytest.mark.parametrize("name", CASES)
def test_coupled_condition_is_that_of_the_written_out_reduction(name: str) -> None:
    problem, network = CASES[name]()
    blocks = reduced(problem, network)
    mean = sum(block @ block.T for block in blocks) / problem.n
    values = sla.eigvalsh(mean)
    low = values[values > 1e-9 * values[-1]][0]
    expected = max(np.linalg.norm(block, 2) ** 2 for block in blocks) / low
    assert spectra.coupled_condition(problem, network)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_lanczos_finds_the_dense_conditions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, network = CASES[name]()
    dense = spectra.stack_condition(problem, network), spectra.coupled_condition(problem, network)
    monkeypatch.setattr(spectra, "DENSE", 0)
    large = spectra.stack_condition(problem, network), spectra.coupled_condition(problem, network)
    for (exact, direct), (found, estimated) in zip(dense, large, strict=True):
        assert found == pytest.approx(exact, rel=1e-6)
        assert (direct, estimated) == (False, True)


@pytest.mark.parametrize("name", CASES)
def test_the_lift_costs_what_the_certified_realization_charges(name: str) -> None:
    problem, network = CASES[name]()
    lift = complexity(problem, network).lift
    assert lift is not None
    made = api.plan(problem, network, CrossApapc(realization="certified"))
    assert lift.rounds_per_iteration == made.iteration["rounds"]


def test_orders_by_hand() -> None:
    """Two agents, x + z - ... with A = 2, B = (1, 3), C = D absent, kappa_f = 4."""
    f = Quadratic(np.diag([4.0, 1.0]), np.zeros(2))
    agents = [Agent(f, A=[[2.0]], B=[[b]], b=[1.0]) for b in (1.0, 3.0)]
    found = complexity(Problem(agents), Network.path(2), tol=1e-4, radius=3.0)
    # S_HC = mean(4 + 1, 4 + 9) = 9, h = 13; chi from c^2 = var(B) / S_HC = 1/9.
    chi = math.sqrt((1 + 1 / 3) / (1 - 1 / 3))
    T = 2 * math.log(1e4)
    assert found.numbers["k_1"] == pytest.approx(13 / 9)
    assert found.numbers["cross_factor"] == pytest.approx(chi)
    own = {row.convexity: row for row in found.comparison if row.model == "CC-MAC"}
    assert own["strong"].gradients == pytest.approx(T)
    assert own["strong"].affine == pytest.approx(chi * T)
    assert own["strong"].rounds == pytest.approx(chi * T)  # kappa_W = 1
    assert own["general"].gradients == pytest.approx(math.sqrt(4 * 9 / 1e-4))
    ledger = found.primitive
    assert ledger["A"] == ledger["B"] == pytest.approx(chi * T * math.sqrt(13 / 9))
    assert ledger["C"] == ledger["D"] == 0
    assert ledger["products"] == pytest.approx(chi * T * math.sqrt(13 / 9))
    assert ledger["rounds"] == pytest.approx(chi * T * (math.sqrt(13 / 9) + 1))


def test_one_agent_never_communicates() -> None:
    problem = Problem([Agent(Quadratic(np.eye(2), np.ones(2)), A=[[1.0]], B=[[1.0]], b=[1.0])])
    found = complexity(problem)
    assert found.primitive["rounds"] == 0
    assert found.lift is not None
    assert found.lift.rounds_per_iteration == 0


def test_the_mixed_method_appears_when_B_is_absent() -> None:
    f = Quadratic(np.eye(2), np.ones(2))
    problem = Problem([Agent(f, A=[[1.0]], b=[1.0]), Agent(f, A=[[2.0]], D=[[1.0]], e=[1.0])])
    rows = {row.work: row for row in complexity(problem, tol=1e-3).comparison}
    assert rows["Yarmoshik 2026"].affine is not None
    assert complexity(problem).primitive["B"] == 0
    assert complexity(problem).numbers["cross_factor"] == pytest.approx(1.0)
