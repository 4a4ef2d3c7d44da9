"""A problem finds its dimensions, and bad input is refused in one line that says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import ccmac
from ccmac.errors import InputError
from ccmac.objectives import Custom, LeastSquares, Logistic, Quadratic, Separable, SquaredDistance

M_ROWS = 2
Q = 3
SIZES = (4, 2, 3)
P = 1
R = 2


def blocks(i: int) -> dict[str, Any]:
    """A full set of good blocks for agent i."""
    rng = np.random.default_rng(i)
    d = SIZES[i]
    return {
        "A": rng.standard_normal((M_ROWS, d)),
        "B": rng.standard_normal((M_ROWS, Q)),
        "b": rng.standard_normal(M_ROWS),
        "C": rng.standard_normal((P, d)),
        "c": rng.standard_normal(P),
        "D": rng.standard_normal((R, Q)),
        "e": rng.standard_normal(R),
    }


def problem(changes: dict[str, Any] | None = None, agent: int = 1) -> ccmac.Problem:
    """Three agents; ``changes`` replaces blocks of one of them."""
    agents = []
    for i in range(3):
        data = blocks(i) | ((changes or {}) if i == agent else {})
        objective = data.pop("objective", SquaredDistance(1.0))
        agents.append(ccmac.Agent(objective, **data))
    return ccmac.Problem(agents)


def refusal(changes: dict[str, Any], agent: int = 1) -> str:
    with pytest.raises(InputError) as caught:
        problem(changes, agent)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_dimensions_of_a_full_problem() -> None:
    full = problem()
    assert (full.n, full.q, full.m) == (3, Q, M_ROWS)
    assert dict(full.d) == dict(enumerate(SIZES))
    assert dict(full.p) == {0: P, 1: P, 2: P}
    assert dict(full.r) == {0: R, 1: R, 2: R}
    assert full.complete
    assert repr(full) == "Problem(n=3, q=3, m=2, d=9, blocks=ABCD)"
    part = full.restricted(range(1, 2))
    assert not part.complete
    assert (part.n, part.q, part.m, dict(part.d)) == (3, Q, M_ROWS, {1: 2})


bad_number = st.sampled_from([np.nan, np.inf, -np.inf])
matrix_name = st.sampled_from("ABCD")
agent_index = st.integers(0, 2)


@given(agent=agent_index, name=matrix_name, bad=bad_number, sparse=st.booleans(), data=st.data())
def test_not_finite_matrices(
    agent: int, name: str, bad: float, sparse: bool, data: st.DataObject
) -> None:
    block = blocks(agent)[name]
    row = data.draw(st.integers(0, block.shape[0] - 1))
    column = data.draw(st.integers(0, block.shape[1] - 1))
    block[row, column] = bad
    message = refusal({name: sp.coo_array(block) if sparse else block}, agent)
    assert message.startswith(f"agent {agent}, block {name}: has entries that are NaN or infinite")


@given(
    agent=agent_index,
    name=st.sampled_from("ABCDbce"),
    spoil=st.sampled_from(
        [
            lambda block: block.astype(str),
            lambda block: block.astype(object),
            lambda block: block.astype(str).tolist(),
            lambda block: np.full(block.shape, "2026-01-01", dtype="datetime64[D]"),
            lambda block: {"a": 1},
            lambda block: [[1.0], [1.0, 2.0]],
        ]
    ),
)
def test_not_numeric(agent: int, name: str, spoil: Any) -> None:
    message = refusal({name: spoil(blocks(agent)[name])}, agent)
    assert message.startswith(f"agent {agent}, block {name}: ")
    assert "not numeric" in message


@given(agent=agent_index, name=st.sampled_from("ABCDbce"), extra=st.integers(1, 3), data=st.data())
def test_wrong_shapes(agent: int, name: str, extra: int, data: st.DataObject) -> None:
    """Growing any block along any axis contradicts some other block."""
    block = blocks(agent)[name]
    axis = data.draw(st.integers(0, block.ndim - 1))
    grown = np.concatenate([block, *[np.take(block, [0], axis)] * extra], axis)
    message = refusal({name: grown}, agent)
    # The one named is where the disagreement shows: the grown block, or its partner.
    assert any(message.startswith(f"agent {i}, block {k}") for i in range(3) for k in "ABCDbce"), (
        message
    )
    if axis == 0 and name in "CD":
        partner = {"C": "c", "D": "e"}[name]
        assert message.startswith(f"agent {agent}, block {partner}: ")


def test_q_differs_between_agents() -> None:
    agents = [
        ccmac.Agent(SquaredDistance(1.0), B=np.ones((2, 3))),
        ccmac.Agent(SquaredDistance(1.0), B=np.ones((2, 4))),
    ]
    said = r"^agent 1, block B: fits z with 4 entries but z has 3 .*agent 0"
    with pytest.raises(InputError, match=said):
        ccmac.Problem(agents)
    with pytest.raises(InputError, match=r"^agent 0, block B: fits z with 3 entries .*problem's q"):
        ccmac.Problem(agents, q=5)


def test_m_differs_between_agents() -> None:
    agents = [
        ccmac.Agent(SquaredDistance(1.0), B=np.ones((2, 3))),
        ccmac.Agent(SquaredDistance(1.0), A=np.ones((4, 2)), B=np.ones((4, 3))),
    ]
    with pytest.raises(InputError, match=r"^agent 1, block A: has 4 rows .*agent 0, block B"):
        ccmac.Problem(agents)


@pytest.mark.parametrize(("name", "owner"), [("c", "C"), ("e", "D")])
def test_right_hand_side_without_its_matrix(name: str, owner: str) -> None:
    message = refusal({owner: None})
    assert message.startswith(f"agent 1, block {name}: given without {owner}; add {owner}")
    assert problem({owner: None, name: None}).n == 3
    harmless = problem({owner: None, name: np.zeros(2)})
    assert getattr(harmless.agents[1], name) is None


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("no objective", "agent 1, objective: str is not a ccmac objective"),
        (None, "agent 1, objective: NoneType is not"),
        (
            Quadratic(np.eye(4), np.zeros(4)),
            "agent 1, objective: fits z with 2 entries but z has 3",
        ),
        (Quadratic(np.eye(1), np.zeros(1)), "agent 1, objective: acts on 1 entries but x alone"),
        (Separable(x=SquaredDistance(1.0, np.ones(9))), "agent 1, objective: SquaredDistance acts"),
        (
            Separable(z=SquaredDistance(1.0, np.ones(9))),
            "agent 1, objective: fits z with 9 entries",
        ),
    ],
)
def test_objectives_that_do_not_fit(objective: Any, message: str) -> None:
    assert refusal({"objective": objective}).startswith(message)


def test_things_that_are_not_agents() -> None:
    with pytest.raises(InputError, match=r"^agent 0: expected a ccmac\.Agent"):
        ccmac.Problem([SquaredDistance(1.0)])
    agent = ccmac.Agent(SquaredDistance(1.0), B=np.ones((1, 1)))
    with pytest.raises(InputError, match=r"^agent 5: index outside 0\.\.2"):
        ccmac.Problem({5: agent}, n=3)
    with pytest.raises(InputError, match=r"^agent 'a'"):
        ccmac.Problem({"a": agent})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="n = 3 but 1 agents"):
        ccmac.Problem([agent], n=3)


def test_dimensions_from_the_objectives_alone() -> None:
    labels = np.array([1.0, -1.0, 1.0])
    data = LeastSquares(np.ones((5, 4)), np.ones(5))
    both = ccmac.Agent(Separable(x=data, z=Logistic(y=labels)))
    only_x = ccmac.Agent(Separable(x=data))
    found = ccmac.Problem([only_x, both])
    assert (found.q, found.m, dict(found.d)) == (3, 0, {0: 4, 1: 4})
    with pytest.raises(InputError, match=r"size of z is not known .* pass q="):
        ccmac.Problem([only_x])
    assert ccmac.Problem([only_x], q=0).q == 0
    with pytest.raises(InputError, match="q = -1 must be a whole number >= 0"):
        ccmac.Problem([only_x], q=-1)
    joint = ccmac.Agent(Custom(lambda x, z: 0.0, lambda x, z: (x, z), 1.0, 1.0, dim=7))
    assert dict(ccmac.Problem([joint, both]).d) == {0: 4, 1: 4}


def test_the_callers_arrays_are_left_alone() -> None:
    unsorted = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])))
    assert not unsorted.has_canonical_format
    before = unsorted.indices.copy(), unsorted.data.copy()
    found = ccmac.Problem([ccmac.Agent(SquaredDistance(1.0), B=unsorted)])
    np.testing.assert_array_equal(found.agents[0].B.toarray(), [[5.0, 0.0, 1.0]])
    np.testing.assert_array_equal(unsorted.indices, before[0])
    np.testing.assert_array_equal(unsorted.data, before[1])


def test_operators_pass_through() -> None:
    operator = aslinearoperator(np.ones((2, 3)))
    found = ccmac.Problem([ccmac.Agent(SquaredDistance(1.0), A=operator, B=np.ones((2, 1)))])
    assert isinstance(found.agents[0].A, LinearOperator)
    assert found.d[0] == 3

    class Shapeless:
        def matvec(self, v: np.ndarray) -> np.ndarray:
            return v

        rmatvec = matvec

    assert refusal({"A": Shapeless()}).startswith("agent 1, block A: the operator has no shape")
