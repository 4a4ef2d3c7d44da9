"""Problems in the coupled price alone, against dense algebra, by all ways of computing sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac import Agent, Network, Problem
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.nystrom import random_signs
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.dual import DualForm

N = 3
M = 4
D = (2, 3, 1)
KINDS = ("dense", "diagonal")
MULTIPLES = (1.0, -2.5, 0.25)
H_Z = (1.5, 0.0, 2.0)


@dataclass
class Case:
    """The parts found, and the same by dense matrices."""

    parts: DualForm
    H: list[Array]
    A: list[Array]
    b: list[Array]
    g_x: list[Array]
    g_z: list[Array]

    @property
    def beta(self) -> float:
        return sum(MULTIPLES)

    @property
    def h(self) -> float:
        return sum(H_Z)

    def plain(self, price: Array) -> Array:
        """sum A_i H_i^{-1} A_i' price."""
        return sum(A @ np.linalg.solve(H, A.T @ price) for A, H in zip(self.A, self.H, strict=True))


def case(kind: str, seed: int = 0) -> Case:
    draw = np.random.default_rng(seed).standard_normal
    H = []
    A = []
    b = []
    g_x = []
    g_z = []
    for d in D:
        root = draw((d, d))
        H.append(np.diag(1 + draw(d) ** 2) if kind != "dense" else root @ root.T + np.eye(d))
        A.append(draw((M, d)))
        b.append(draw(M))
        g_x.append(draw(d))
        g_z.append(draw(M))
    agents = []
    for i, d in enumerate(D):
        whole = np.zeros((d + M, d + M))
        whole[:d, :d], whole[d:, d:] = H[i], H_Z[i] * np.eye(M)
        f = Quadratic(sp.csr_array(whole), np.append(g_x[i], g_z[i]))
        agents.append(
            Agent(f, A=sp.csr_array(A[i]), B=MULTIPLES[i] * sp.eye_array(M, format="csr"), b=b[i])
        )
    runtime = InProcess(Network.complete(N))
    found = Workspace(Problem(agents), runtime).eliminated
    assert found is not None
    return Case(found, H, A, b, g_x, g_z)


@pytest.mark.parametrize("kind", KINDS)
def test_constants(kind: str) -> None:
    c = case(kind)
    parts = c.parts
    assert (parts.beta, parts.h) == (c.beta, c.h)
    assert parts.c == c.beta**2 / c.h * (1 - 8 * EPS)
    ends = [np.linalg.eigvalsh(H)[[0, -1]] for H in c.H]
    least = min(low - 2 * EPS * len(H) * high for (low, high), H in zip(ends, c.H, strict=True))
    assert parts.mu == pytest.approx(min(least, c.h), rel=1e-14)
    assert parts.lengths_of_blocks == pytest.approx([np.linalg.norm(A) for A in c.A])
    assert parts.m == M


@pytest.mark.parametrize("kind", KINDS)
def test_minimisers_sums_and_images(kind: str) -> None:
    c = case(kind, 1)
    parts = c.parts
    draw = np.random.default_rng(5).standard_normal
    price = draw(M)
    rows = draw((N, 2))
    ledger = parts.ledger
    before = ledger.of("solve")
    x = parts.minimisers(price)
    spent = ledger.of("solve") - before
    assert (spent["argmins"], spent["A"]) == (1, 1)
    own = [np.linalg.solve(H, g - A.T @ price) for H, g, A in zip(c.H, c.g_x, c.A, strict=True)]
    assert x == pytest.approx(np.concatenate(own))
    slope = sum(c.g_z)
    assert parts.shared(price, slope) == pytest.approx((slope - c.beta * price) / c.h)
    images = [A @ v for A, v in zip(c.A, own, strict=True)]
    assert parts.images(x) == pytest.approx(np.array(images))
    before = ledger.of("solve")
    total, more = parts.sums(x, rows, minus=parts.b)
    spent = ledger.of("solve") - before
    assert (spent["A"], spent["averagings"]) == (1, 1)
    assert spent["bytes"] == parts.runtime.average_cost(M + 2)["bytes"]
    assert total == pytest.approx(sum(images) - sum(c.b))
    assert more == pytest.approx(rows.sum(axis=0))
    assert parts.sums(x)[0] == pytest.approx(sum(images))
    before = ledger.of("solve")
    image, change = parts.apply(price)
    spent = ledger.of("solve") - before
    assert {**spent, "longest_message": 0} == {**parts.cost, "longest_message": 0}
    assert parts.cost == Cost(argmins=1, A=2) + parts.runtime.average_cost(M)
    assert image == pytest.approx(c.plain(price) + parts.c * price)
    inverses = [np.linalg.solve(H, A.T @ price) for H, A in zip(c.H, c.A, strict=True)]
    assert change == pytest.approx(np.concatenate(inverses))
    coupled, slope_again, sizes = parts.residual(x)
    assert coupled == pytest.approx(sum(images) - sum(c.b))
    assert slope_again == pytest.approx(slope)
    lengths = sum(float(np.linalg.norm(g)) for g in c.g_z)
    assert sizes == pytest.approx(lengths)
    assert parts.slope().value == pytest.approx(np.append(slope, lengths))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sketch_of_what_is_not_known(kind: str) -> None:
    c = case(kind, 2)
    parts = c.parts
    S = np.array([c.plain(v) for v in np.eye(M)]).T
    before = parts.ledger.of("solve")
    found = parts.sketch(2, 7)
    spent = parts.ledger.of("solve") - before
    assert (spent["argmins"], spent["A"], spent["averagings"]) == (2, 4, 1)
    assert spent["bytes"] == parts.runtime.average_cost(2 * M)["bytes"]
    W = random_signs(M, 2, 7)
    Y = S @ W
    B = found.B
    assert pytest.approx(Y @ np.linalg.solve(W.T @ Y, Y.T), rel=1e-6) == B @ B.T
    before = parts.ledger.of("solve")
    assert parts.sketch(2, 7) is found
    assert set(parts.ledger.of("solve") - before) <= {"longest_message"}
    nothing = parts.sketch(0, 7)
    assert nothing.B.shape[1] == 0
    assert set(parts.ledger.of("solve") - before) <= {"longest_message"}


# -- which problems have the form ------------------------------------------------------------------
def posed(**change: Any) -> DualForm | None:
    """Two agents with x + z = 1 and 2 x + z = 1 in one variable each, changed as said."""
    known = {"h": 1.0, "betas": (1.0, 0.5), "mixed": 0.0, "H": 2.0, "more": {}, **change}
    agents = []
    for k, beta in enumerate(known["betas"]):
        H = np.array([[known["H"], known["mixed"]], [known["mixed"], known["h"]]])
        blocks = {"A": sp.csr_array([[1.0 + k]]), "B": sp.csr_array([[beta]]), "b": [1.0]}
        agents.append(Agent(Quadratic(H, np.ones(2)), **blocks, **known["more"]))
    return Workspace(Problem(agents), InProcess(Network.complete(2))).eliminated


@pytest.mark.parametrize(
    "change",
    [
        {"h": 0.0},
        {"mixed": 0.5},
        {"betas": (0.0, 0.0)},
        {"betas": (1.0, -1.0)},
        {"H": 0.0},
        {"more": {"C": [[1.0]], "c": [0.0]}},
        {"more": {"D": [[1.0]], "e": [0.0]}},
    ],
)
def test_what_cannot_be_eliminated(change: dict[str, Any]) -> None:
    assert posed() is not None
    assert posed(**change) is None


def test_one_agent_may_bring_all_the_curvature_of_z() -> None:
    f = [Quadratic(np.diag([1.0, h]), np.ones(2)) for h in (0.0, 3.0)]
    one = sp.csr_array([[1.0]])
    agents = [Agent(v, A=one, B=one, b=[1.0]) for v in f]
    found = Workspace(Problem(agents), InProcess(Network.complete(2))).eliminated
    assert found is not None
    assert (found.h, found.c) == (3.0, pytest.approx(4 / 3))
    agents[0] = Agent(Quadratic(np.diag([1.0, 1.0]), np.ones(2)), B=one, b=[1.0])
    found = Workspace(Problem(agents), InProcess(Network.complete(2))).eliminated
    assert found is not None
    assert found.lengths_of_blocks.tolist() == [0.0, 1.0]
    assert found.sketch(1, 0).B.shape[1] == 1
