"""prepare, update, solve again: the answers of fresh solves, without a setup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import vfl
from ccmac.errors import InputError
from ccmac.methods import CrossCg
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.workspace import dual


def table(rows: int = 300, columns: int = 40) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, columns)) * np.logspace(0, -1.5, columns)
    return X, np.sign(X @ random.standard_normal(columns) + 0.1 * random.standard_normal(rows))


def ridge(X: np.ndarray, y: np.ndarray, rho: float = 0.0) -> np.ndarray:
    gram = (1 + rho) * X.T @ X / len(y) + 1e-2 * np.eye(X.shape[1])
    return np.linalg.solve(gram, X.T @ y / len(y))


def rounds(result: ccmac.Result) -> list[int]:
    return [result.ledger.of(phase)["rounds"] for phase in ("setup", "solve", "monitor")]


def test_new_labels_need_no_setup() -> None:
    X, y = table()
    random = np.random.default_rng(1)
    prepared = ccmac.prepare(vfl.problem(X, y, 4), "ring", CrossCg(sketch=8))
    results: list[ccmac.Result] = []
    for k in range(5):
        if k:
            y = np.where(random.random(len(y)) < 0.01, -y, y)
            prepared.update(y=y)
        results.append(prepared.solve(1e-6, warm_start=results[-1] if results else None))
        result = results[-1]
        assert result.status == "optimal"
        assert rounds(result) == [6 if not k else 0, 2 * result.iterations, 2]
        weights = ridge(X, y)
        off = prepared.problem.weights(result) - weights
        scores = result.z - X @ weights / np.sqrt(len(y))
        assert np.hypot(np.linalg.norm(off), np.linalg.norm(scores)) <= result.error_bound
    assert rounds(results[0])[0] == 6  # each result keeps its own ledger


def test_a_sketch_holds_what_the_columns_need_and_long_ones_take_several_averagings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table()
    monkeypatch.setattr(dual, "PIECE", 4)
    found = []
    for floats in (2**27, 300 * 4 * 20):  # of 20 vectors of 300 rows at 4 agents
        monkeypatch.setattr(dual, "FLOATS", floats)
        prepared = ccmac.prepare(vfl.problem(X, y, 4), "ring", CrossCg())
        results = [prepared.solve(1e-6) for _ in range(3)]
        assert [r.status for r in results] == ["optimal"] * 3
        assert {r.plan.settings["sketch"] for r in results} == {40 + dual.SPARE}
        found.append(results[0])
    assert [rounds(r)[0] for r in found] == [6, 10]  # 48 vectors in three averagings, not in one
    np.testing.assert_allclose(found[1].z, found[0].z, rtol=0, atol=1e-12)
    assert found[1].ledger["network_bytes"] == found[0].ledger["network_bytes"]
    monkeypatch.setattr(dual, "HELD", 300 * 20)
    prepared = ccmac.prepare(vfl.problem(X, y, 4), "ring", CrossCg())
    sizes = []
    for k in range(3):
        prepared.update(y=np.roll(y, k))
        sizes.append(prepared.solve(1e-6).plan.settings["sketch"])
    assert sizes == [20, 20, 20]  # nobody holds more


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("owner", [None, 1])
def test_labels_of_a_vertical_problem(rho: float, owner: int | None) -> None:
    X, y = table()
    made = vfl.problem(X, -y, 4, shared_regularization=rho, label_owner=owner)
    prepared = ccmac.prepare(made, "ring")
    prepared.update(y=y)
    result = prepared.solve(1e-9)
    assert prepared.problem.weights(result) == pytest.approx(ridge(X, y, rho), abs=1e-8)


def test_labels_of_a_logistic_loss() -> None:
    X, y = table()
    options: dict[str, Any] = {"loss": "logistic", "shared_regularization": 0.5}
    prepared = ccmac.prepare(vfl.problem(X, y, 3, **options), "ring")
    prepared.solve(1e-3)
    flipped = np.where(np.arange(len(y)) % 7 == 0, -y, y)
    prepared.update(y=flipped)
    again = prepared.solve(1e-7)
    fresh = ccmac.solve(vfl.problem(X, flipped, 3, **options), "ring", tol=1e-7)
    assert again.status == "optimal"
    assert np.concatenate(again.x) == pytest.approx(np.concatenate(fresh.x), abs=1e-6)


@pytest.mark.parametrize("method", ["auto", "cross-cg", "cross-apapc"])
def test_other_sides_of_any_problem(method: str) -> None:
    before = random_quadratic(3, 4)
    random = np.random.default_rng(0)
    sides: dict[str, list[Any]] = {name: [] for name in "bceg"}
    reference = solve_kkt(before)
    x = reference.x
    z = reference.z
    agents = []
    for i, agent in before.agents.items():
        x_i = x[i] + 0.1 * random.standard_normal(len(x[i]))
        z_i = z + 0.1
        new = {"g": agent.objective.g + random.standard_normal(len(agent.objective.g))}
        new["b"] = agent.A @ x_i + agent.B @ z_i
        new["c"] = None if agent.C is None else agent.C @ x_i
        new["e"] = None if agent.D is None else agent.D @ z_i
        for name, side in sides.items():
            side.append(new[name])
        objective = ccmac.objectives.Quadratic(agent.objective.H, new["g"])
        agents.append(replace(agent, objective=objective, **{k: new[k] for k in "bce"}))
    prepared = ccmac.prepare(before, "ring", method)
    first = prepared.solve(1e-6)
    prepared.update(**sides)
    result = prepared.solve(1e-8)
    exact = solve_kkt(ccmac.Problem(agents)).vector
    assert first.status == result.status == "optimal"
    off = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert off <= result.error_bound + 1e-12
    assert result.ledger.of("setup")["rounds"] <= first.ledger.of("setup")["rounds"]


@pytest.mark.parametrize("method", ["auto", "cross-cg", "cross-apapc", "cross-lbfgs"])
@pytest.mark.parametrize("name", ["b", "c", "g"])
def test_new_sides_are_told_with_the_first_message(method: str, name: str) -> None:
    before = random_quadratic(3, 4)
    random = np.random.default_rng(0)
    reference = solve_kkt(before)
    sides = []
    agents = []
    for i, agent in before.agents.items():
        x = reference.x[i] + 0.1 * random.standard_normal(len(reference.x[i]))
        g = agent.objective.g + random.standard_normal(len(agent.objective.g))
        block = agent.C if name == "c" else agent.A
        side = g if name == "g" else None if block is None else block @ x
        if name == "b":
            side = side + agent.B @ reference.z
        sides.append(side)
        new = {"objective": ccmac.objectives.Quadratic(agent.objective.H, g)}
        agents.append(replace(agent, **(new if name == "g" else {name: side})))
    prepared = ccmac.prepare(before, "ring", method)
    first = prepared.solve(1e-7)
    prepared.update(**{name: sides})
    result = prepared.solve(1e-7)
    exact = solve_kkt(ccmac.Problem(agents)).vector
    assert first.ledger.of("setup")["rounds"] > 0
    direct = method == "auto" and name == "g"  # whose gathered sums are the linear terms
    assert result.ledger.of("setup")["rounds"] == (2 if direct else 0)
    off = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert off <= result.error_bound + 1e-12


@pytest.mark.parametrize("method", ["auto", "cross-cg", "cross-sliding"])
def test_a_time_limit_leaves_new_sides_known(method: str) -> None:
    """Of one that nobody reaches no message more; of one that ends the setup, the next solve."""
    before = random_quadratic(3, 4)
    agents = [replace(agent, b=2 * agent.b) for agent in before.agents.values()]
    exact = solve_kkt(ccmac.Problem(agents)).vector
    spent = []
    for seconds in ([None], [60.0], [1e-9, None]):
        prepared = ccmac.prepare(before, "ring", method)
        prepared.solve(1e-6)
        prepared.update(b=[agent.b for agent in agents])
        *_, result = [prepared.solve(1e-8, max_seconds=limit) for limit in seconds]
        off = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
        assert off <= result.error_bound + 1e-12
        spent.append(rounds(result))
    assert spent[0] == spent[1]


def test_what_is_refused() -> None:
    X, y = table()
    prepared = ccmac.prepare(vfl.problem(X, y, 4), "ring")
    with pytest.raises(InputError, match="y: give all 300 labels"):
        prepared.update(y=y[:-1])
    with pytest.raises(InputError, match="b: give a list with one entry for each of the 4 agents"):
        prepared.update(b=[y])
    with pytest.raises(InputError, match="7 is no agent"):
        prepared.update(b={7: y})
    with pytest.raises(InputError, match="agent 2: Separable has no linear term g"):
        prepared.update(g={2: y})
    with pytest.raises(InputError, match="agent 0"):
        prepared.update(b={0: y[:3]})
    quadratic = ccmac.prepare(random_quadratic(3, 4), "ring")
    with pytest.raises(InputError, match="agent 1: Quadratic has no targets"):
        quadratic.update(y={1: y})
    with pytest.raises(InputError, match="tol"):
        prepared.solve(0.0)
    one = ccmac.objectives.SquaredDistance(1.0, [1.0, 1.0])
    stack = ccmac.prepare(ccmac.Stack(one, [(np.array([[1.0, 0.0]]), np.zeros(1))]))
    with pytest.raises(InputError, match="Stack"):
        stack.update(b=[])
