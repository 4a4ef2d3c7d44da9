"""Parts of methods in closed form: a tuner's predictions, least eigenvalues, pooled losses."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac import Agent, Network, Problem, solve
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.local import inverse
from ccmac.objectives import L1, Huber, Logistic, Quadratic, Separable, SquaredDistance
from ccmac.paper.comparators import pooling, spectra, tuning
from ccmac.paper.comparators.accelerated import GraphFilter
from ccmac.paper.comparators.local_argmin import _Descent, _Piece
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


# -- the tuner -------------------------------------------------------------------------------------
def trial(increments: list[float], size: float = 2.0, target: float = 1e-8) -> Any:
    found = tuning._Trial.__new__(tuning._Trial)
    found.goal, found.count = math.sqrt(target), len(increments)
    found._last = np.array([size])
    space = Fake(
        ride=lambda *pairs: Fake(value=np.array([float(u @ v) for u, v in pairs]), grain=0.0)
    )
    found.iteration = Fake(space=space)
    found._increments = [Fake(value=[s * s], grain=0.0) for s in increments]
    return found


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_end_of_a_trial_that_falls_by_a_constant_factor(rate: float) -> None:
    """Of s_j = s e^{-rate j} about s_k / (1 - e^{-rate}) is left, to be goal ||w||."""
    found = trial([7.0 * math.exp(-rate * j) for j in range(40)])
    last = [7.0 * math.exp(-rate * j) for j in range(30, 40)]
    after = math.sqrt(np.mean(np.square(last)))
    left = after / (1 - math.exp(-rate))
    assert found._end() == pytest.approx(40 + math.log(left / (1e-4 * 2.0)) / rate)
    arrived = trial([1e-9 * math.exp(-rate * j) for j in range(40)])
    assert arrived._end() == 40


def test_the_end_of_a_trial_that_does_not_fall() -> None:
    assert trial([1.0] * 40)._end() == math.inf
    assert trial([1.0] * 30 + [0.0] * 10)._end() == 40.0
    falling = [math.exp(-0.1 * j) for j in range(40)]
    assert trial(falling, target=0.0)._end() == math.inf
    assert trial(falling, size=0.0)._end() == math.inf


def test_the_setting_predicted_to_end_first_is_carried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """b is in front until it has run 60 steps and is seen to need 500; a ends at 100."""
    ends = {"a": {30: 90, 60: 100, 120: 100}, "b": {30: 50, 60: 500}, "c": {30: 1e9}}
    log: list[tuple[str, int]] = []

    class Runner:
        def __init__(self, setting: str, *_: Any) -> None:
            self.setting = setting
            self.count = 0
            self.predicted = math.inf

        def extend(self, count: int) -> None:
            log.append((self.setting, count))
            self.count = count
            self.predicted = ends[self.setting][count]

    monkeypatch.setattr(tuning, "_Trial", Runner)
    work: Any = Fake(space=Fake(count=2))
    request: Any = Fake(z0=np.zeros(1))
    assert tuning.tuned(work, request, ["a", "b", "c"], lambda s: s, "w") == "a"  # type: ignore[arg-type, return-value]
    assert log == [("a", 30), ("b", 30), ("c", 30), ("b", 60), ("a", 60), ("a", 120)]
    monkeypatch.setattr(tuning, "HORIZON", 60)
    log.clear()
    assert tuning.tuned(work, request, ["a"], lambda s: s, "w") == "a"  # type: ignore[arg-type, return-value]
    assert log == [("a", 30), ("a", 60)]


# -- spectra ---------------------------------------------------------------------------------------
def test_the_least_positive_eigenvalue() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    S = turn * [0.0, 0.3, 2.0, 5.0, 7.0] @ turn.T
    work: Any = Fake(runtime=InProcess(Network.complete(2)))

    def contribution(v: Array) -> Array:
        return np.stack([2 * S @ v[0], 0 * v[0]])

    assert spectra.least_eigenvalue(work, contribution, 5, 0) == pytest.approx(0.3)
    none = spectra.least_eigenvalue(work, lambda v: np.zeros((2, 5)), 5, 0)
    assert none == 1.0


def test_a_run_that_is_cut_keeps_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    S = np.diag(np.linspace(1.0, 10.0, 8))
    work: Any = Fake(runtime=InProcess(Network.complete(2)))

    def contribution(v: Array) -> Array:
        return np.stack([S @ v[0]] * 2)

    whole = spectra.least_eigenvalue(work, contribution, 8, 1)
    assert whole == pytest.approx(1.0)
    monkeypatch.setattr(spectra, "STEPS", 3)
    cut = spectra.least_eigenvalue(work, contribution, 8, 1)
    start = S @ np.random.default_rng(1).standard_normal(8)
    basis = np.linalg.qr(np.column_stack([start, S @ start, S @ S @ start]))[0]
    assert cut == pytest.approx(0.5 * np.linalg.eigvalsh(basis.T @ S @ basis)[0])


# -- the two channels of the dual ------------------------------------------------------------------
def test_channels_of_diagonal_blocks_are_measured_exactly() -> None:
    """A_i, T_i diagonal: signs drop out, so that random probes give the traces."""
    f = [Quadratic(np.diag([h, h, k, k]), np.zeros(4)) for h, k in ((2.0, 4.0), (5.0, 8.0))]
    A = [np.diag([3.0, 1.0]), np.diag([2.0, 2.0])]
    agents = [Agent(g, A=a, b=[0.0, 0.0]) for g, a in zip(f, A, strict=True)]
    work = Workspace(Problem(agents, q=2), InProcess(Network.complete(2)))
    asked = []

    def energies(h: Array) -> Array:
        asked.append(h)
        return np.array(
            [
                float(x @ x) / g.H[0, 0] + float(z @ z) / g.H[2, 2]
                for g, (x, z) in zip(f, work.space.split(h), strict=True)
            ]
        )

    coupled, shared = inverse.channel_curvatures(work, energies, 3)
    assert coupled == pytest.approx(((9 + 1) / 2 + (4 + 4) / 5) / 2)
    assert shared == pytest.approx((2 / 4 + 2 / 8) / (2 * 2))
    assert len(asked) == inverse.PROBES + 1
    work.recycles = True
    for _ in range(2):
        inverse.channel_curvatures(work, energies, 3)
    assert len(asked) == 2 * (inverse.PROBES + 1)
    assert inverse.channel_curvatures(work, lambda h: np.zeros(2), 4) == (1.0, 1.0)


# -- pooled losses ---------------------------------------------------------------------------------
def pooled(parts: list[Any], name: str = "R2", q: int = 2) -> tuple[int, list[Any]]:
    joint = Quadratic(np.eye(3), np.zeros(3))
    fs = [joint if p == "joint" else Separable(SquaredDistance(1.0), p) for p in parts]
    agents = [Agent(f, A=np.ones((1, 1)), b=[0.0]) for f in fs]
    work = Workspace(Problem(agents, q=q), InProcess(Network.complete(len(parts))))
    return pooling.pooled_loss(work, name)


def test_squared_distances_are_pooled() -> None:
    """2/2 |z - (1, 0)|^2 + 6/2 |z - (0, 2)|^2 = 8/2 |z - (1/4, 3/2)|^2 + constant."""
    holder, found = pooled(
        [None, SquaredDistance(2.0, [1.0, 0.0]), SquaredDistance(6.0, [0.0, 2.0])]
    )
    assert holder == 1
    for h in found:
        weight, linear = h.isotropic()
        assert weight == pytest.approx(8.0)
        assert linear == pytest.approx([2.0, 12.0])
    assert pooled([None, None])[0] == 0
    assert all(h.isotropic()[0] == 0.0 for h in pooled([None, None])[1])
    assert all(h.isotropic()[0] == 0.0 for h in pooled([SquaredDistance(0.0), None])[1])


def test_equal_losses_are_pooled_by_their_weights() -> None:
    y = np.array([1.0, -1.0])
    holder, found = pooled([Logistic(None, y, 2.0), Logistic(None, y, 3.0)])
    assert holder == 0
    assert [h.weight for h in found] == [5.0, 5.0]
    z = np.array([0.3, -0.7])
    assert found[0].value_at(z) == pytest.approx(5 * Logistic(None, y, 1.0).value_at(z))
    for other in (
        Logistic(None, -y, 3.0),
        Huber(None, y, 1.0),
        L1(1.0),
        SquaredDistance(1.0),
        "joint",
    ):
        with pytest.raises(MethodRefused, match="R1"):
            pooled([Logistic(None, y, 2.0), other])
    holder, found = pooled([None, Logistic(None, y, 2.0)])
    assert (holder, found[0].isotropic()[0], found[1].weight) == (1, 0.0, 2.0)
    with pytest.raises(MethodRefused, match="labels at every agent"):
        pooled([None, Logistic(None, y, 2.0)], "R3")


def test_a_reduction_without_curvature_in_z_is_refused() -> None:
    """Agent 1 has none: mu_f is zero exactly, however much agent 0 has."""
    parts = (SquaredDistance(2.0), None)
    agents = [Agent(Separable(SquaredDistance(1.0), p), A=[[1.0]], b=[0.0]) for p in parts]
    with pytest.raises(MethodRefused, match="strongly convex under reduction R1"):
        solve(Problem(agents, q=1), "complete", method="coupled-yarmoshik")


def test_one_agent_has_no_graph_to_filter_on() -> None:
    alone, two = (GraphFilter(InProcess(Network.complete(n))) for n in (1, 2))
    assert alone(np.ones((1, 3))).tolist() == [[0.0] * 3]
    assert two(np.ones((2, 0))).shape == (2, 0)
    for found, width in ((alone, 3), (two, 0)):
        assert found.cost(width) == Cost()
    assert (alone.degree, two.degree) == (0, 1)
    assert two(np.array([[1.0], [3.0]])) == pytest.approx(np.array([[-1.0], [1.0]]))


@pytest.mark.parametrize("held", [[0, 1, 2, 3], [0, 1, 3]])
def test_newton_steps_where_z_is_not_taken_entry_by_entry(held: list[int]) -> None:
    """The inverse of H + penalty on the entries held, along one equation."""
    draw = np.random.default_rng(0).standard_normal
    H_x, H_z, P = (r @ r.T + np.eye(len(r)) for r in (draw((2, 2)), draw((2, 2)), draw((4, 4))))
    f = Separable(Quadratic(H_x, np.zeros(2)), Quadratic(H_z, np.zeros(2)))
    at = np.array(held)
    penalty = sp.csr_array(P[np.ix_(at, at)])
    E = draw((1, len(at)))
    zero = np.zeros(len(at))
    E /= np.linalg.norm(E)
    found = _Descent(_Piece(f, 2, 2, at, penalty, E, zero))
    whole = P.copy()
    whole[:2, :2] += H_x
    whole[2:, 2:] += H_z
    M = np.block([[whole[np.ix_(at, at)], E.T], [E, np.zeros((1, 1))]])
    v = draw(len(at))
    expected = np.linalg.solve(M, np.append(v, 0.0))[:-1]
    assert found.inverse(zero)(v) == pytest.approx(expected)
    assert found.minimise(-v, zero)[0] == pytest.approx(expected)
