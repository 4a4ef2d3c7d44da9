"""Joint normalization: its spectrum, its balance, its price list, and that it solves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ccmac import vfl
from ccmac.errors import InputError
from ccmac.methods.apapc import Apapc
from ccmac.network import Network
from ccmac.paper.canonical_channels import canonical_channels
from ccmac.paper.instances.reference import solve_kkt
from ccmac.paper.realizations.canonical import canonical
from ccmac.paper.realizations.joint import INTERVALS, joint
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from paper.realizations.flavours import (
    FLAVOURS,
    error,
    instance,
    iterate,
    normal_matrix,
    positive_ends,
)


@pytest.mark.parametrize("name", FLAVOURS)
def test_reaches_the_kkt_solution_at_the_predicted_ledger(name: str) -> None:
    problem, network = instance(name)
    solution = solve_kkt(problem).vector
    realization, fused, interval = (
        ("averaged", True, "minimal"),
        ("averaged", False, "tight"),
        ("canonical", True, "tight"),
    )[[*FLAVOURS].index(name) % 3]
    runtime = InProcess(network, fused=fused)
    realized = joint(Workspace(problem, runtime), realization=realization, interval=interval)
    iterations, w = iterate(realized, solution, tol=1e-7)
    assert error(realized, w, solution) <= 1e-7
    assert runtime.ledger.of("solve") == iterations * Apapc(realized).cost
    unused = "rounds" if realization == "canonical" else "modelled_rounds"
    assert runtime.ledger[unused] == 0


@pytest.mark.parametrize("name", FLAVOURS)
def test_intervals_hold_the_spectrum_and_tight_ones_touch_it(name: str) -> None:
    problem, network = instance(name)
    # An execution learns its interval by Lanczos and leaves 1e-6 at both ends.
    slacks = {"canonical": 1e-8, "averaged": 3e-6}
    for interval, realization in itertools.product(INTERVALS, slacks):
        realized = joint(
            Workspace(problem, InProcess(network)), realization=realization, interval=interval
        )
        if realized.system.empty:
            continue
        low, high = positive_ends(normal_matrix(realized.system))
        ends = realized.system.interval
        assert ends.low <= low * (1 + 1e-9)
        assert high <= ends.high * (1 + 1e-9)
        assert ends.ratio <= (high / low) * (1 + slacks[realization])


def test_the_stack_is_the_canonical_one() -> None:
    problem, network = instance("no D")
    K_1, _ = canonical_channels(problem, network).to_dense()
    realized = joint(Workspace(problem, InProcess(network)), eta=0.7)
    n = problem.n
    q = problem.q
    J = np.kron(np.full((n, n), 1 / n), np.eye(q))
    G = K_1.T @ K_1
    start = realized.space.x_size
    G[start:, start:] += 0.49 * (np.eye(n * q) - J)
    assert np.allclose(normal_matrix(realized.system), G, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("chi", [1.0, 3.0])
@pytest.mark.parametrize(
    ("shape", "realization", "margin"),
    [
        ((12, 6), "averaged", 1e-8),
        ((12, 6), "canonical", 1e-8),
        ((6, 12), "canonical", 1e-8),
        ((6, 12), "averaged", 2e-6),  # learnt by Lanczos, with 1e-6 left at both ends
    ],
)
def test_closed_form_for_multiples_of_the_identity(
    n: int, chi: float, shape: tuple[int, int], realization: str, margin: float
) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal(shape)
    y = random.standard_normal(shape[0])
    problem = vfl.problem(X, y, n, shares=("cross_factor", chi))
    realized = joint(Workspace(problem, InProcess(Network.complete(n))), realization=realization)
    low, high = positive_ends(normal_matrix(realized.system))
    ends = realized.system.interval
    assert ends.low == pytest.approx(low, rel=margin)
    assert ends.high == pytest.approx(high, rel=margin)


def test_separate_normalization_needs_fewer_calls() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 20)) * np.geomspace(1, 30, 20)
    problem = vfl.problem(X, random.standard_normal(60), 4)
    solution = solve_kkt(problem).vector
    calls = {}
    for name, build in (("joint", joint), ("cross", canonical)):
        runtime = InProcess(Network.ring(4))
        options = {"realization": "canonical"} if name == "joint" else {"inner": 24}
        realized = build(Workspace(problem, runtime), interval="minimal", **options)
        iterate(realized, solution, tol=1e-3)
        calls[name] = runtime.ledger["affine"]
    assert calls["joint"] >= 4 * calls["cross"]


def test_refusals_say_what_to_do() -> None:
    problem, network = instance("all blocks")
    with pytest.raises(InputError, match="realization 'certified' is unknown; take averaged or"):
        joint(Workspace(problem, InProcess(network)), realization="certified")
    with pytest.raises(InputError, match="interval 'odd' is unknown"):
        joint(Workspace(problem, InProcess(network)), interval="odd")
    with pytest.raises(InputError, match="has 3 agents but the problem has 4"):
        joint(Workspace(problem, InProcess(Network.ring(3))))
