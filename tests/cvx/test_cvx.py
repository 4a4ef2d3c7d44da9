"""CVXPY models among owners against Clarabel on the whole, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ccmac_check
import cvxpy as cp
import numpy as np
import pytest

import ccmac
from ccmac.cvx.split import Division
from ccmac.errors import InputError
from cvx.models import disagreements, random_model


@pytest.mark.parametrize("seed", range(12))
def test_random_models(seed: int) -> None:
    assert disagreements(random_model(seed)) == []


def test_parameters_change_between_solves() -> None:
    wishes = [cp.Parameter(2, name="wish", value=[1.0, 1.0 + i]) for i in range(3)]
    limit = cp.Parameter(name="limit", value=1.5)
    spent = [cp.Variable(2) for _ in wishes]
    agents = [
        ccmac.cvx.Agent(
            cp.Minimize(cp.sum_squares(x - wish) + cp.norm1(x)),
            [cp.norm(x) <= limit, x[0] <= 1],
            coupled=[cp.sum(x) - 1],
        )
        for x, wish in zip(spent, wishes, strict=True)
    ]
    own = [agent.model.user.constraints[0] for agent in agents]
    joined = [cp.Variable(2) for _ in wishes]
    rows = [cp.norm(x) <= limit for x in joined]
    rows += [cp.sum(cp.hstack(joined)) <= 3, *(x[0] <= 1 for x in joined)]
    cost = sum(cp.sum_squares(x - w) + cp.norm1(x) for x, w in zip(joined, wishes, strict=True))
    whole = cp.Problem(cp.Minimize(cost), rows)
    prepared = ccmac.prepare(ccmac.Problem(agents, sense="<="), "ring")
    for value in (1.5, 0.9):
        limit.value = value
        wishes[0].value = [value, 0.2]
        prepared.update()
        result = prepared.solve(1e-9)
        whole.solve(cp.CLARABEL)
        assert result.objective == pytest.approx(whole.value, abs=1e-6)
        for x, same, c, row in zip(spent, joined, own, rows, strict=False):
            np.testing.assert_allclose(x.value, same.value, atol=1e-4)
            assert float(c.dual_value) == pytest.approx(float(row.dual_value), abs=1e-4)
    limit.value = None
    with pytest.raises(InputError, match="parameter limit has no value"):
        prepared.update()


def test_a_parameter_that_multiplies_is_refused() -> None:
    x = cp.Variable(2)
    price = cp.Parameter(2, value=[1.0, 2.0])
    agent = ccmac.cvx.Agent(cp.Minimize(cp.sum_squares(x)), coupled=[price @ x - 1], name="north")
    prepared = ccmac.prepare(ccmac.Problem([agent]))
    assert prepared.solve().status == "optimal"
    price.value = [2.0, 2.0]
    with pytest.raises(InputError, match="north: its parameters change block A"):
        prepared.update()


def test_a_shared_variable_with_attributes_and_one_that_is_not_used() -> None:
    x, y = cp.Variable(name="x"), cp.Variable(name="y")
    mine, yours = cp.Variable(2, nonneg=True), cp.Variable(2)
    rest = cp.Variable(3)
    one = ccmac.cvx.Agent(
        cp.Minimize(cp.square(x - 3) + cp.sum_squares(mine - [-1, 1])),
        [x <= mine[1]],
        shared={"level": mine, "rest": rest},
    )
    other = ccmac.cvx.Agent(
        cp.Minimize(cp.square(y)),
        [y >= yours[1] + 1, rest == 2],
        shared={"rest": rest, "level": yours},
    )
    result = ccmac.solve(ccmac.Problem([one, other]), tol=1e-9)
    assert result.status == "optimal"
    np.testing.assert_allclose(result.z, [0, yours.value[1], 2, 2, 2], atol=1e-5)
    np.testing.assert_allclose(mine.value, yours.value, atol=1e-5)


def test_every_owner_gets_what_is_shared_also_when_a_limit_ends_the_run() -> None:
    wants = [cp.Variable((2, 2)), cp.Variable((2, 2))]
    levels = [cp.Variable(2) for _ in range(3)]
    agents = [
        ccmac.cvx.Agent(
            cp.Minimize(cp.sum_squares(wants[0] - 1)),
            [cp.norm(wants[0], "fro") <= 3],
            coupled=[wants[0] - np.eye(2)],
            shared={"level": levels[0]},
        ),
        ccmac.cvx.Agent(
            cp.Maximize(-cp.sum_squares(wants[1]) - cp.sum(levels[1])),
            coupled=[-wants[1].T],
            shared={"level": levels[1]},
        ),
        ccmac.cvx.Agent(cp.Minimize(cp.sum_squares(levels[2] - 3)), shared={"level": levels[2]}),
    ]
    problem = ccmac.Problem(agents)
    cut = ccmac.solve(problem, max_iterations=1)
    assert agents[0].model.user.variables()[0].value is not None
    assert agents[0].model.problem.status == "user_limit"
    assert ccmac.solve(problem, tol=1e-9, warm_start=cut).status == "optimal"
    for level in levels:
        np.testing.assert_allclose(level.value, 2.5, atol=1e-5)
    np.testing.assert_allclose(wants[0].value, [[1, 0.5], [0.5, 1]], atol=1e-5)
    assert agents[1].model.problem.value == pytest.approx(-5.5, abs=1e-5)


def test_a_model_without_cones_is_confirmed_and_goes_masked(tmp_path: Path) -> None:
    a, b, level = cp.Variable(2), cp.Variable(2), cp.Variable()
    cost = cp.sum_squares(a - 1) + cp.norm1(b) + cp.square(level)
    rows = [cp.sum(a + b) == 1, a[0] <= 3 * a[1], cp.norm_inf(b) <= 0.2, level >= 0.1]
    model = cp.Problem(cp.Minimize(cost), rows)
    problem = ccmac.cvx.split(model, {"north": [a], "south": [b]}, [level])
    result = ccmac.solve(problem, tol=1e-7)
    problem.save(tmp_path / "problem")
    result.save(tmp_path / "result")
    assert ccmac_check.check(tmp_path / "problem", tmp_path / "result")[0] == "confirmed"
    values = [model.value, ccmac.solve(problem, averaging="masked") and model.value]
    assert values == pytest.approx([model.solve(cp.CLARABEL)] * 2, abs=1e-5)


def test_parts_of_owners_add_up() -> None:
    a, b, c = cp.Variable((2, 2)), cp.Variable((2, 2)), cp.Variable()
    price = cp.Parameter((2, 2), value=np.ones((2, 2)))
    M = np.arange(4.0).reshape(2, 2)
    expressions = [
        2 * (a - b) / 3 + c + M,
        cp.sum(cp.hstack([a @ M, M, b])),
        cp.cumsum(cp.vstack([a[0], M[0], cp.abs(b[1])]), axis=0) - c,
        cp.kron(M, a + b + 1)[1:3],
        cp.multiply(price, a + M @ b).T + cp.diag(cp.diag(b)),
        cp.convolve([1.0, 2.0], cp.hstack([a[0], b[1], c])),
        cp.trace(a + b) + cp.norm(cp.vec(a, order="F")) + cp.max(b) - price[0, 0],
    ]
    division = Division({a.id: "north", b.id: "south"}, ["north", "south", "east"])
    for v in (a, b, c):
        v.value = np.random.default_rng(0).standard_normal(v.shape)
    for whole in expressions:
        parts = division.parts(whole, whole)
        np.testing.assert_allclose(sum(p.value for p in parts.values()), whole.value)
        assert all(division.of(part) <= {name} for name, part in parts.items())


# -- typical mistakes ------------------------------------------------------------------------------
x, y = cp.Variable(2, name="x"), cp.Variable(2, name="y")
z = cp.Variable(name="z")
whole = cp.Variable(2, integer=True, name="trucks")
imaginary = cp.Variable(complex=True, name="phasor")
square = cp.Variable((2, 2), symmetric=True, name="S")
price = cp.Parameter(2, name="price")
COST = cp.Minimize(cp.sum_squares(x) + cp.sum_squares(y))
OWNERS = {"north": [x], "south": [y]}
agent = ccmac.cvx.Agent
split = ccmac.cvx.split


def divided(term: Any, *rows: Any) -> ccmac.Problem:
    return split(
        cp.Problem(cp.Minimize(cp.sum_squares(x) + cp.sum_squares(y) + term), rows), OWNERS
    )


MISTAKES: dict[str, Callable[[], Any]] = {
    "variable trucks must be whole": lambda: agent(cp.Minimize(cp.sum(whole))),
    "phasor is complex": lambda: agent(cp.Minimize(cp.abs(imaginary))),
    "exp.x. needs an exponential cone": lambda: agent(cp.Minimize(cp.sum(cp.exp(x)))),
    "S .*>> 0 needs a semidefinite cone": lambda: agent(
        cp.Minimize(cp.trace(square)), [square >> 0]
    ),
    "needs a power cone": lambda: agent(cp.Minimize(z), [cp.PowCone3D(x[0], x[1], z, 0.4)]),
    "breaks CVXPY's rules": lambda: agent(cp.Minimize(cp.sqrt(x[0]))),
    "give cp.Minimize": lambda: agent(cp.sum_squares(x)),
    "give a list of CVXPY": lambda: agent(cp.Minimize(z), x >= 1),
    "constraint 1: True is a bool": lambda: agent(cp.Minimize(z), [z >= 1, price.size > 1]),
    "parameter price has no value": lambda: agent(cp.Minimize(price @ x)),
    "coupled 0: .*norm.* is not affine": lambda: agent(COST, coupled=[cp.norm1(x) - 1]),
    "coupled 0: .* is a constraint": lambda: agent(COST, coupled=[x[0] <= 1]),
    "coupled: give a list": lambda: agent(COST, coupled=x[0]),
    "shared level: .* is no cp.Variable": lambda: agent(COST, shared={"level": x[0]}),
    "one variable has two names": lambda: agent(COST, shared={"a": x, "b": x}),
    "variable y has no owner": lambda: split(cp.Problem(COST), {"north": [x]}),
    "variable x is listed twice": lambda: split(cp.Problem(COST), OWNERS, [x]),
    "variable z is not in the problem": lambda: split(cp.Problem(COST), OWNERS, [z]),
    "owner south: .* list whole variables": lambda: split(
        cp.Problem(COST), {"north": [x], "south": [y[0], y[1]]}
    ),
    "owners: give a mapping": lambda: split(cp.Problem(COST), [x, y]),
    "is no cp.Problem": lambda: split(COST, OWNERS),
    "variables of north and south; give one of them a variable": lambda: divided(cp.norm(x + y)),
    "in .* <= 1.0 has variables of north and south": lambda: divided(0, cp.norm_inf(x - y) <= 1),
    "SOC.* has variables of several owners": lambda: divided(0, cp.SOC(x[0], y)),
    "entries but the coupled equation has|rows but the coupled equation has": lambda: ccmac.Problem(
        [agent(COST, coupled=[x[0]]), agent(COST, coupled=[x])]
    ),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_typical_mistakes_are_one_line(words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        MISTAKES[words]()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
