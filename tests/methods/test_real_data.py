"""Vertical federated learning on LIBSVM data: counts of the default settings, every round charged.

Without the data the same runs use generated look-alikes: they must converge as predicted, and the
bounds that belong to the real sets are not asserted (the header of the run says which it was).
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.methods import CrossCg
from ccmac.paper import data
from ccmac.paper.data import Dataset

LAMBDA = 1e-2
ROOT = Path(__file__).parents[2]


@cache
def dataset(name: str) -> Dataset:
    return data.load(name, fallback=True)


@cache
def ridge(name: str) -> np.ndarray:
    X = dataset(name).X
    y = dataset(name).y
    rows, columns = X.shape
    gram = (X.T @ X).toarray() / rows + LAMBDA * np.eye(columns)
    return np.linalg.solve(gram, X.T @ y / rows)


def logistic(X: object, y: np.ndarray, rho: float) -> np.ndarray:
    """Newton on the weights: an independent reference."""
    rows, columns = X.shape  # type: ignore[attr-defined]
    w = np.zeros(columns)
    for _ in range(60):
        p = X @ w  # type: ignore[operator]
        s = 1 / (1 + np.exp(y * p))
        gradient = X.T @ (-y * s + rho * p) / rows + LAMBDA * w  # type: ignore[attr-defined]
        weights = (s * (1 - s) + rho) / rows
        hessian = (X.T @ X.multiply(weights[:, None])).toarray() + LAMBDA * np.eye(columns)  # type: ignore[attr-defined]
        step = np.linalg.solve(hessian, gradient)
        w -= step
        if np.linalg.norm(step) < 1e-13:
            break
    return w


FREE = ccmac.Costs(byte=0)  # every message takes the fewest rounds
# name, agents, alpha; gradients and rounds of solve, setup and monitor (docs/costs.md) ...
# of cross-apapc, and those rounds of cross-cg ...
TABLE = [
    ("a9a", 8, None, (22, 88, 12, 20), (24, 8, 12)),
    ("mushrooms", 8, None, (18, 72, 12, 20), (24, 8, 12)),
    ("w8a", 8, None, (34, 136, 12, 20), (48, 8, 12)),
    ("a8a", 16, None, (22, 176, 24, 40), (48, 16, 24)),
    ("a9a", 8, ("cross_factor", 3.0), (32, 128, 12, 20), (24, 8, 12)),
    ("a9a", 8, ("cross_factor", 8.0), (53, 212, 12, 20), (24, 8, 12)),
]
# ... and what other splits of the columns may need.
CEILING = 1.1


def rounds(result: ccmac.Result) -> tuple[int, ...]:
    """Of solve, setup and monitor."""
    return tuple(result.ledger.of(phase)["rounds"] for phase in ("solve", "setup", "monitor"))


def reached(method: str, name: str, n: int, alpha: object, seed: int) -> ccmac.Result:
    """A run that ends at the reference, checked against it."""
    found = dataset(name)
    exact = ridge(name)
    problem = ccmac.vfl.problem(found.X, found.y, n, alpha=alpha, partition_seed=seed)
    result = ccmac.solve(problem, ccmac.Network.ring(n), method, 1e-6, reference=exact, costs=FREE)
    assert result.status == "optimal"
    assert np.sum((problem.weights(result) - exact) ** 2) <= 1e-6 * np.sum(exact**2)
    return result


@pytest.mark.parametrize(
    ("name", "n", "alpha", "exact", "seed"),
    [*((*row[:4], 0) for row in TABLE), (*TABLE[0][:4], 3), (*TABLE[1][:4], 3)],
)
def test_ridge_counts(name: str, n: int, alpha: object, exact: tuple[int, ...], seed: int) -> None:
    result = reached("cross-apapc", name, n, alpha, seed)
    assert result.plan is not None
    assert result.plan.iterations is not None
    assert 1 / 2.5 <= result.iterations / result.plan.iterations <= 2.5
    for unit, count in (result.iterations * result.plan.iteration).items():
        assert result.ledger[unit] == count
    if dataset(name).source != "libsvm":
        return
    ledger = result.ledger
    found = ledger["gradients"], *rounds(result)
    if seed == 0:
        assert found == exact
    else:
        assert all(a <= CEILING * b for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize(("name", "n", "alpha", "_", "exact"), TABLE)
def test_ridge_counts_of_conjugate_gradients(
    name: str, n: int, alpha: object, _: object, exact: tuple[int, ...]
) -> None:
    result = reached("cross-cg", name, n, alpha, 0)
    if dataset(name).source == "libsvm":
        assert rounds(result) == exact


# Rounds of setup, solve and monitor to a certified 1e-6: auto, and cross-apapc. Bytes are free.
PROVED = {
    ("a9a", 8): ((8, 44, 4), (12, 144, 12)),
    ("mushrooms", 8): ((8, 44, 4), (12, 76, 12)),
    ("w8a", 8): ((8, 92, 4), (12, 320, 12)),
    ("a8a", 16): ((16, 88, 8), (24, 280, 24)),
}


@cache
def certified(name: str, n: int, method: str) -> tuple[ccmac.vfl.VflProblem, ccmac.Result]:
    found = dataset(name)
    problem = ccmac.vfl.problem(found.X, found.y, n)
    return problem, ccmac.solve(problem, ccmac.Network.ring(n), method, 1e-6, costs=FREE)


@pytest.mark.parametrize("method", ["auto", "cross-apapc"])
@pytest.mark.parametrize(("name", "n"), PROVED)
def test_certified_rounds(name: str, n: int, method: str) -> None:
    found = dataset(name)
    exact = ridge(name)
    problem, result = certified(name, n, method)
    off = np.concatenate(result.x) - np.concatenate(problem.blocks_of(exact))
    scores = problem.predictions(result) - found.X @ exact
    error = np.hypot(np.linalg.norm(off), np.linalg.norm(scores) / problem.prediction_scale)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 10 * error
    if found.source == "libsvm":
        rounds = (result.ledger.of(p)["rounds"] for p in ("setup", "solve", "monitor"))
        assert tuple(rounds) == PROVED[name, n][method == "cross-apapc"]


@pytest.mark.parametrize(("name", "n"), PROVED)
def test_wide_messages_take_one_diameter_more_by_default(name: str, n: int) -> None:
    """And fewer than half the bytes; narrow ones are relayed."""
    found = dataset(name)
    problem, free = certified(name, n, "auto")
    priced = ccmac.solve(problem, ccmac.Network.ring(n), "auto", 1e-6)
    assert priced.iterations == free.iterations
    if found.source == "libsvm":
        assert priced.ledger.total("rounds") == free.ledger.total("rounds") + n // 2
        assert priced.ledger.total("bytes") < 0.5 * free.ledger.total("bytes")


@pytest.mark.parametrize("name", ["a9a", "mushrooms"])
def test_solves_that_come_again(name: str) -> None:
    method = CrossCg()
    found = dataset(name)
    random = np.random.default_rng(0)
    ring = ccmac.Network.ring(8)
    y = found.y
    last = None
    counts = []
    cold = ccmac.solve(ccmac.vfl.problem(found.X, y, 8), ring, method, 1e-6).iterations
    prepared = ccmac.prepare(ccmac.vfl.problem(found.X, y, 8), ring, method)
    for k in range(3):
        if k:
            y = np.where(random.random(len(y)) < 0.01, np.unique(y).sum() - y, y)
            prepared.update(y=y)
        last = prepared.solve(1e-6, warm_start=last)
        assert last.status == "optimal"
        assert (last.ledger.of("setup")["rounds"] > 0) == (k == 0)
        counts.append(last.iterations)
    if found.source == "libsvm":
        assert counts[2] <= 0.6 * cold
        assert counts[1] <= 30  # half of what plain conjugate gradients take on a9a, cold


# name, agents; gradients of the paper's steps with exact whitening, z as it is and z / sqrt(N).
WHITENED = {("a9a", 8): (747, 40), ("mushrooms", 8): (366, 45), ("a8a", 16): (882, 28)}


def whitened(name: str, n: int, scaled: bool) -> int:
    """Iterations of the paper's APAPC to RelErr 1e-6, with exact projections on both channels.

    The copies of z stay equal: they are one vector u of unit weight, u = sqrt(n) X w.
    """
    found = dataset(name)
    length = math.sqrt(found.X.shape[0])
    X = found.X / length if scaled else found.X
    root = math.sqrt(n)
    split = X.shape[1]
    projection = np.linalg.inv(np.eye(split) + n * (X.T @ X).toarray())
    curvature = 1 / n if scaled else 1 / (n * length**2)
    target = root * (found.y / length if scaled else found.y)
    hessian = np.repeat([LAMBDA, curvature], [split, len(target)])
    linear = np.concatenate([np.zeros(split), curvature * target])
    mu = min(LAMBDA, curvature)
    tau = min(1.0, 0.5 * math.sqrt(19 / 15 * mu / max(LAMBDA, curvature)))
    eta = 1 / (4 * tau * max(LAMBDA, curvature))
    theta = 15 / (19 * eta)
    w = np.zeros(len(hessian))
    ahead = w
    p = w
    exact = ridge(name)
    iterations = 0
    while np.sum((w[:split] - exact) ** 2) > 1e-6 * np.sum(exact**2):
        middle = tau * w + (1 - tau) * ahead
        half = (w - eta * (hessian * middle - linear - mu * middle + p)) / (1 + eta * mu)
        weights = projection @ (half[:split] + root * (X.T @ half[split:]))
        off = theta * (half - np.concatenate([weights, root * (X @ weights)]))
        p = p + off
        new = half - eta / (1 + eta * mu) * off
        ahead = middle + 2 * tau / (2 - tau) * (new - w)
        w = new
        iterations += 1
    return iterations


@pytest.mark.parametrize(("name", "n"), WHITENED)
def test_gradients_of_the_papers_steps_with_exact_whitening(name: str, n: int) -> None:
    if dataset(name).source != "libsvm":
        pytest.skip("the counts belong to the real sets")
    assert (whitened(name, n, False), whitened(name, n, True)) == WHITENED[name, n]


def test_the_pages_print_these_counts() -> None:
    """docs/costs.md and docs/methods-why.md say what the tests above have counted."""
    costs = " ".join((ROOT / "docs" / "costs.md").read_text(encoding="utf-8").split())
    for name, n, alpha, (gradients, *counts), _ in TABLE:
        label = name if n == 8 else f"{name}, {n} agents"
        label += f" at chi = {alpha[1]:g}" if alpha else ""
        told = f"{' + '.join(map(str, counts))} = {sum(counts)}"
        assert f"| {label} | {gradients} | {told} |" in costs
    listed = [str(sum(counts)) for *_, counts in TABLE[:4]]
    assert f"{', '.join(listed[:3])} and {listed[3]} rounds in all three phases" in costs
    assert len({exact for name, *_, exact in TABLE if name == "a9a"}) == 1
    proved = [sum(auto) for auto, _ in PROVED.values()]
    assert f"it takes {', '.join(map(str, proved[:3]))} and {proved[3]} rounds" in costs
    plain, scaled = zip(*WHITENED.values(), strict=True)
    assert (
        "method then needs {}, {} and {} gradients (a9a, mushrooms, a8a)".format(*scaled) in costs
    )
    assert "and {}, {} and {} with z as it is".format(*plain) in costs
    page = (ROOT / "docs" / "methods-why.md").read_text(encoding="utf-8")
    for method, counts in (
        ("cross-apapc", [exact[1:3] for *_, exact, _ in TABLE[:4]]),
        ("cross-cg", [exact[:2] for *_, exact in TABLE[:4]]),
    ):
        cells = " | ".join(f"{solve} ({setup})" for solve, setup in counts)
        assert f"| `{method}` | {cells} |" in page


@pytest.mark.parametrize("name", ["a9a", "mushrooms"])
def test_logistic_counts(name: str) -> None:
    found = dataset(name)
    exact = logistic(found.X, found.y, LAMBDA)
    problem = ccmac.vfl.problem(
        found.X, found.y, 8, loss="logistic", regularization=LAMBDA, shared_regularization=LAMBDA
    )
    network = ccmac.Network.ring(8)
    result = ccmac.solve(problem, network, method="cross-apapc", tol=1e-6, reference=exact)
    assert result.status == "optimal"
    if found.source == "libsvm":
        assert result.ledger["rounds"] <= 480
    fine = ccmac.solve(problem, network, method="cross-apapc", tol=1e-16, reference=exact)
    assert np.linalg.norm(problem.weights(fine) - exact) <= 1e-8 * np.linalg.norm(exact)


def test_huber_reaches_a_fine_reference() -> None:
    """Huber with ridges on both blocks, against semismooth Newton on the weights."""
    found = dataset("a1a")
    X = found.X
    y = found.y
    rows, columns = X.shape
    delta = 0.8

    def value(w: np.ndarray) -> float:
        p = X @ w
        r = np.abs(p - y)
        loss = np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta))
        return float(loss.mean() + LAMBDA / 2 * (w @ w) + LAMBDA / 2 / rows * (p @ p))

    exact = np.zeros(columns)
    for _ in range(100):
        p = X @ exact
        inside = np.abs(p - y) <= delta
        gradient = X.T @ (np.clip(p - y, -delta, delta) + LAMBDA * p) / rows + LAMBDA * exact
        weights = (inside + LAMBDA) / rows
        hessian = (X.T @ X.multiply(weights[:, None])).toarray() + LAMBDA * np.eye(columns)
        step = np.linalg.solve(hessian, gradient)
        if np.linalg.norm(step) < 1e-13:
            break
        length = 1.0
        while length > 1e-6 and value(exact - length * step) > value(exact):
            length /= 2
        exact -= length * step
    assert np.linalg.norm(gradient) < 1e-13
    problem = ccmac.vfl.problem(
        X, y, 8, loss="huber", delta=delta, regularization=LAMBDA, shared_regularization=LAMBDA
    )
    result = ccmac.solve(problem, ccmac.Network.ring(8), method="cross-apapc", tol=1e-9)
    assert result.status == "optimal"
    error = np.linalg.norm(problem.weights(result) - exact)
    assert error <= result.error_bound + 1e-13
    assert error <= 1e-8 * np.linalg.norm(exact)
