"""What docs/privacy.md says can be learned, computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.methods.interior.compressed import compressed
from ccmac.methods.interior.iteration import Interior
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.runtime.averaging import Averaging
from ccmac.workspace import Workspace

N = 60
FEATURES = 9
AGENTS = 3


def table(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, FEATURES))
    return X, X @ rng.standard_normal(FEATURES) + rng.standard_normal(N)


@pytest.mark.parametrize("owner", [None, 2])
def test_with_a_squared_loss_z_and_the_coupled_price_tell_all_labels(owner: int | None) -> None:
    """y = sqrt(N) (z - lambda): the slope of the loss at the predictions is the price."""
    X, y = table()
    problem = ccmac.vfl.problem(X, y, AGENTS, regularization=0.1, label_owner=owner)
    result = ccmac.solve(problem, "ring", tol=1e-7)
    assert result.multipliers is not None
    guess = np.sqrt(N) * (result.z - result.multipliers.coupled)
    assert np.abs(guess - y).max() < 1e-5 * np.abs(y).max()


@pytest.mark.parametrize("owner", [None, 2])
def test_with_a_logistic_loss_they_tell_their_signs(owner: int | None) -> None:
    X, y = table(1)
    labels = np.sign(y)
    problem = ccmac.vfl.problem(
        X, labels, AGENTS, "logistic", regularization=0.1, label_owner=owner
    )
    result = ccmac.solve(problem, "ring", tol=1e-6)
    assert result.multipliers is not None
    assert np.array_equal(np.sign(-result.multipliers.coupled), labels)


def test_with_hubers_loss_they_tell_labels_as_far_as_its_slope_does() -> None:
    """Residuals where the slope grows, and on which side the label is where it does not."""
    X, y = table(2)
    problem = ccmac.vfl.problem(X, y, AGENTS, "huber", regularization=0.1, delta=1.0)
    result = ccmac.solve(problem, "ring", tol=1e-7)
    assert result.multipliers is not None
    slope, predicted = np.sqrt(N) * np.array([result.multipliers.coupled, result.z])
    grows = np.abs(slope) < 1 - 1e-4
    assert 0 < grows.sum() < N
    assert np.abs(predicted - slope - y)[grows].max() < 1e-4
    assert np.array_equal(np.sign(predicted - y)[~grows], np.sign(slope)[~grows])


@pytest.mark.parametrize("n", [2, 5])
def test_who_joins_all_others_knowledge_knows_the_last_ones_row(n: int) -> None:
    """The sum less their own rows, masked or not; of two agents each is all others."""
    rows = np.random.default_rng(0).standard_normal((n, 5))
    total = n * ccmac.InProcess(ccmac.Network.path(n), averaging="masked").average(rows)
    assert np.allclose(total[0] - rows[:-1].sum(axis=0), rows[-1], rtol=0, atol=1e-14)


def test_gathered_equations_tell_the_products_of_an_agents_blocks() -> None:
    """From the factor that is sent everybody knows A_i A_i' (here without C_i), and B_i, b_i."""
    rng = np.random.default_rng(3)
    f = ccmac.objectives.Quadratic(np.eye(5), np.zeros(5))
    blocks = [(rng.standard_normal((2, 3)), rng.standard_normal((2, 2))) for _ in range(AGENTS)]
    problem = ccmac.Problem([ccmac.Agent(f, A=A, B=B, b=[1.0, 2.0]) for A, B in blocks])
    reduced = Workspace(problem, ccmac.InProcess(ccmac.Network.ring(AGENTS))).gather_constraints()
    assert reduced is not None
    sent = [reduced._message(k, 2, 0) for k in range(AGENTS)]
    for row, (A, B) in zip(sent, blocks, strict=True):
        factor = row[:4].reshape(2, 2)
        assert np.allclose(factor @ factor.T, A @ A.T)
        assert np.array_equal(row[4:8].reshape(2, 2), B)
        assert row[8:10].tolist() == [1.0, 2.0]


class Noted(ccmac.InProcess):
    """Keeps the rows of agent 0, as they leave it."""

    def _pool(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        self.__dict__.setdefault("rows", []).extend(part[0].copy() for part in parts)
        return super()._pool(scheme, parts, tables)


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-lbfgs"])
def test_rows_of_many_iterations_tell_the_range_of_a_block(method: str) -> None:
    rng = np.random.default_rng(3)
    m = 6
    agents = [
        ccmac.Agent(
            ccmac.objectives.Quadratic(np.diag(rng.uniform(1, 4, d)), rng.standard_normal(d)),
            A=rng.standard_normal((m, d)),
            b=rng.standard_normal(m) if d > 2 else None,
        )
        for d in (2, 3, 4)
    ]
    runtime = Noted(ccmac.Network.path(3), fused=False)
    ccmac.solve(ccmac.Problem(agents), method=method, tol=1e-8, runtime=runtime)
    rows = np.array([row for row in vars(runtime)["rows"] if len(row) == m])
    basis = np.linalg.qr(agents[0].A)[0]
    assert np.allclose(rows, rows @ basis @ basis.T)
    assert np.linalg.matrix_rank(rows, tol=1e-9) == 2


def test_two_sums_of_interior_points_tell_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """X D X' and X E X' with diagonal D, E: their pencil has the columns of X as directions."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 20))
    problem = ccmac.vfl.problem(X, X[:, 0], AGENTS, regularization=0.0, l1=0.05)
    sums = []

    def seen(run: Interior, shares: Array) -> Array:
        total = plain(run, shares)
        if len(total) >= run.system.width:
            square = np.zeros((2 * N, 2 * N))
            square[run.system.at] = total[: run.system.entries]
            upper = square[N:, N:] / np.outer(run.units[0].coupled, run.units[0].coupled)
            sums.append(upper + np.triu(upper, 1).T)
        return total

    plain = Interior.sum
    monkeypatch.setattr(Interior, "sum", seen)
    assert ccmac.solve(problem, "ring", "cross-ipm").status == "optimal"
    basis = np.linalg.svd(sums[1])[0][:, :20]
    one, other = (basis.T @ S @ basis for S in sums[1:3])
    guess = basis @ np.linalg.eig(one @ np.linalg.inv(other))[1].real
    cosines = (guess / np.linalg.norm(guess, axis=0)).T @ (X / np.linalg.norm(X, axis=0))
    assert np.abs(cosines).max(axis=0).min() > 1 - 1e-9


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_long_rows_tell_the_range_and_products_of_a_block_not_its_columns(loss: str) -> None:
    """The same is told of a block whose columns are turned: what is sent says not which it was."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, FEATURES))
    y = np.sign(rng.standard_normal(400))
    problem = ccmac.vfl.problem(X, y, AGENTS, loss, regularization=0.1, l1=0.01)
    agents = list(problem.agents.values())
    A = agents[0].A
    told = []
    wide = A.shape[1]
    turned = A @ np.linalg.qr(rng.standard_normal((wide, wide)))[0]
    for block in (A, turned):
        agents[0] = replace(agents[0], A=block)
        runtime = ccmac.InProcess(ccmac.Network.ring(AGENTS))
        lift, inner = compressed(Workspace(ccmac.Problem(agents), runtime))
        first = next(iter(lift._turned(ccmac.Problem(agents))))[:, :wide]
        assert np.allclose(first @ first.T, A @ A.T)
        assert inner.gather_constraints() is not None
        sent = inner.gather_constraints()._message(0, wide, 0)[: lift.rank * wide]
        told.append(lift.Q @ sent.reshape(lift.rank, wide))
        assert np.allclose(told[-1] @ told[-1].T, A @ A.T)
    assert not np.allclose(A, turned)


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-lbfgs"])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_a_masked_solve_of_known_structure_is_proved(method: str, scale: float) -> None:
    """The bound holds against the dense KKT system, whatever the size of the numbers."""
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 8))
    y = scale * random.standard_normal(60)
    result, error, size = masked(ccmac.vfl.problem(X, y, 4), method)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 1e-8 * max(1.0, size)


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-lbfgs"])
def test_a_masked_solve_of_any_equations_is_proved_by_convention(method: str) -> None:
    """Nobody sees the equations together: sums of squares tell of them, up to their cut."""
    problem = random_quadratic(5, 4, d=3, q=2, m=2, kappa_f=4.0)
    result, error, size = masked(problem, method)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 1e-8 * max(1.0, size)
    network = ccmac.Network.ring(4)
    hidden = ccmac.InProcess(network, averaging="masked")
    assert Workspace(problem, hidden).gather_constraints() is None


def test_a_masked_direct_solve_is_proved_where_sums_of_squares_tell_rows_apart() -> None:
    problem = random_quadratic(5, 4, d=3, q=9, m=2, r=1, kappa_f=4.0)
    result, error, size = masked(problem, "cross-direct")
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 1e-8 * max(1.0, size)


def general(rng: np.random.Generator) -> ccmac.Problem:
    """All four families of blocks; curvature, equations and right-hand sides are private."""
    agents = []
    for _ in range(3):
        linear, A, B, b, c = (rng.standard_normal(k) for k in (5, (2, 3), (2, 2), 2, 1))
        factor = rng.standard_normal((5, 5))
        f = ccmac.objectives.Quadratic(np.eye(5) + factor @ factor.T, linear)
        agents.append(ccmac.Agent(f, A=A, B=B, b=b, C=rng.standard_normal((1, 3)), c=c))
    return ccmac.Problem(agents)


def vertical(rng: np.random.Generator, loss: str) -> ccmac.Problem:
    """A table with a column of zeros and ones, and labels."""
    X = rng.standard_normal((16, 6))
    X[:, 0] = rng.random(16) < 0.5
    y = rng.standard_normal(16)
    if loss in ("logistic", "hinge"):
        y = np.where(np.arange(16) < 2, [-1.0, 1.0] * 8, np.sign(y))  # both classes are there
    return ccmac.vfl.problem(X, y, 3, loss=loss, regularization=float(rng.uniform(0.1, 0.2)))


def bounded(rng: np.random.Generator) -> ccmac.Problem:
    agents = [
        ccmac.Agent(
            ccmac.objectives.Quadratic(np.diag(rng.uniform(1, 2, 3)), rng.standard_normal(3)),
            A=rng.standard_normal((2, 3)),
            b=0.1 * rng.standard_normal(2),
            lower=-rng.uniform(1, 2, 3),
            upper=rng.uniform(1, 2, 3),
        )
        for _ in range(3)
    ]
    return ccmac.Problem(agents)


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (general, "cross-cg"),
        (general, "cross-apapc"),
        (general, "cross-direct"),
        (general, "cross-lbfgs"),
        (bounded, "auto"),
        *(
            pytest.param(partial(vertical, loss=loss), method, id=f"{loss}-{method}")
            for loss, method in (
                ("squared", "auto"),
                ("squared", "cross-cg"),
                ("logistic", "auto"),
                ("huber", "auto"),
                ("hinge", "auto"),
            )
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else getattr(v, "__name__", "vertical"),
)
def test_what_travels_open_next_to_masked_sums_does_not_depend_on_the_data(
    make: Callable[[np.random.Generator], ccmac.Problem],
    method: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every open word of a run is a small whole number, and the same whatever the private data.

    No norm, no constant of an objective, no digest of a loss: other columns of zeros and ones,
    other labels and curvatures leave the same words.
    """
    opened: list[Any] = []
    pool = ccmac.InProcess._pool

    def seen(self: Any, scheme: Any, parts: Any, tables: Any) -> Any:
        opened.extend(table.tolist() for table in tables)
        assert not any(part.size for part in parts)  # whatever is summed is masked
        return pool(self, scheme, parts, tables)

    monkeypatch.setattr(ccmac.InProcess, "_pool", seen)
    runs = []
    for seed in range(3):
        problem = make(np.random.default_rng(seed))
        ccmac.solve(problem, "ring", method, 1e-6, averaging="masked", max_iterations=12)
        runs.append(list(opened))
        opened.clear()
    words = np.concatenate([np.ravel(table) for run in runs for table in run])
    assert words.size
    assert np.array_equal(words, np.rint(words))
    assert np.abs(words).max() <= 64  # sizes, yes or no
    short = min(map(len, runs))  # runs may end at different iterations
    assert runs[0][:short] == runs[1][:short] == runs[2][:short]


def test_a_masked_maximum_tells_nothing_else() -> None:
    """The words of a maximum are random where somebody reaches, whoever and how many it may be."""
    network = ccmac.Network.ring(4)
    runtime = ccmac.InProcess(network, averaging="masked")
    scheme = runtime.averaging
    rng = np.random.default_rng(0)
    for spread in (0.0, 1.0, 200.0):
        values = np.exp(spread * rng.standard_normal((4, 5)))
        low, high = runtime.extremes(values, values)
        assert (values.max(axis=0) <= high).all()
        assert (high <= 1.05 * values.max(axis=0)).all()
        assert (values.min(axis=0) >= low).all()
        assert (low >= values.min(axis=0) / 1.05).all()
    ends = np.array([[0.0, np.inf, 5e-324, 1.7e308]] * 4)
    low, high = runtime.extremes(ends, ends)
    assert high.tolist()[:2] == [0.0, np.inf]
    assert (low <= ends[0]).all()
    assert (high >= ends[0]).all()
    sums = []
    for levels in ([[3], [0], [0], [0]], [[3], [3], [2], [3]]):
        shared: list[Any] = []
        share = runtime._share
        runtime._share = lambda words, tables, s=share, k=shared: (
            k.append(words) or s(words, tables)
        )  # type: ignore[method-assign,misc]
        assert scheme.highest(runtime, np.array(levels), 8).tolist() == [3]  # type: ignore[attr-defined]
        runtime._share = share  # type: ignore[method-assign]
        sums.append(np.add.reduce(shared[0], axis=0, dtype=np.uint64))
    assert all((total[:3] != 0).all() and not total[3:].any() for total in sums)
    assert not (sums[0][:3] == sums[1][:3]).any()


def test_a_checkpoint_lets_guesses_of_an_agents_data_be_confirmed(tmp_path: Path) -> None:
    """It has 96 bits for every agent, which are those of the data and of nothing else."""

    def digests(name: str, changed: float) -> list[bytes]:
        agents = list(random_quadratic(1, 3, d=3, q=2, m=2).agents.values())
        agents[1] = replace(agents[1], b=agents[1].b + changed)
        kept = {"path": tmp_path / name, "every": 1}
        problem = ccmac.Problem(agents)
        ccmac.solve(problem, "ring", "cross-cg", max_iterations=1, checkpoint=kept)
        [file] = (tmp_path / name).glob("state-*.npz")
        with np.load(file) as stored:
            return [row.tobytes() for row in stored["agents/depends on"].reshape(3, 12)]

    real = digests("real", 0.0)
    other = digests("other", 1e-9)
    assert digests("guess", 0.0) == real
    assert [a == b for a, b in zip(real, other, strict=True)] == [True, False, True]


def masked(problem: ccmac.Problem, method: str) -> tuple[ccmac.Result, float, float]:
    """(result, its true error, the size of its point)."""
    exact = solve_kkt(problem)
    result = ccmac.solve(problem, ccmac.Network.ring(4), method, 1e-8, averaging="masked")
    point = np.concatenate([*result.x, result.z])
    off = np.linalg.norm(point - np.concatenate([*exact.x, exact.z]))
    return result, float(off), float(np.linalg.norm(point))
