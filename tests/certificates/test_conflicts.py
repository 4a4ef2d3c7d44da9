"""A contradiction among equations that all know, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from ccmac import Agent, Network, Problem
from ccmac.certificates import conflicts, infeasibility, own_rows
from ccmac.certificates.conflicts import Conflicts
from ccmac.certificates.infeasibility import described
from ccmac.certificates.multipliers import Recovery
from ccmac.certificates.own_rows import contradiction
from ccmac.certificates.weighing import Lambda, Weighed, Weighing
from ccmac.linalg.ranks import row_space
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

COARSE = 2.0**-7


def posed() -> tuple[Conflicts, Reduced]:
    """x = (3, 1) by C alone, then (1, 2)'z = 11 - 9 - 1 by the coupled row and 5 by D."""
    f = Quadratic(np.eye(3), np.zeros(3))
    agents = [
        Agent(f, A=[[3.0]], B=[[1.0, 2.0]], b=[10.0], C=[[2.0]], c=[6.0], D=[[1.0, 2.0]], e=[5.0]),
        Agent(f, A=[[1.0]], B=[[0.0, 0.0]], b=[1.0], C=[[4.0]], c=[4.0]),
    ]
    work = Workspace(Problem(agents), InProcess(Network.complete(2)))
    assert work.gather_constraints() is not None
    return Conflicts(work), work.gather_constraints()


def test_a_share_in_closed_form() -> None:
    """Of agent 0: b'y + c'kappa, what A'y + C'kappa leaves, and the sizes."""
    found, reduced = posed()
    high, low, off2, terms, size, point = found._share(
        reduced, 0, np.array([2.0]), np.array([-5.0])
    )
    assert high + low == 10 * 2 - 6 * 5
    assert math.sqrt(off2) == pytest.approx(abs(3 * 2 - 2 * 5))
    assert (terms, size, point) == (20 + 30, 5.0, pytest.approx(3.0**2))


def test_a_misfit_that_may_be_rounding_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of the range lie 4 uv/h of (u, 5v): SEEN for every row, and the kernels' angle,
    which excuses a share of TURNED at most.
    """
    found, reduced = posed()
    monkeypatch.setattr(conflicts, "PLAIN", math.inf)
    u = float(reduced.unit[0])
    v = float(reduced.unit_D[0])
    share = 4 * u * v / math.hypot(u, v) / math.hypot(u, 5 * v)
    for factor, there in ((0.99, True), (1.01, False)):
        monkeypatch.setattr(conflicts, "SEEN", factor * share / math.sqrt(2))
        assert (found.together(reduced) is not None) is there
    monkeypatch.setattr(conflicts, "SEEN", 0.25 * share / math.sqrt(2))
    for factor, there in ((0.74, True), (0.76, False)):
        monkeypatch.setattr(conflicts, "TURNED", 1.0)
        reduced.angle = factor * share
        assert (found.together(reduced) is not None) is there
        monkeypatch.setattr(conflicts, "TURNED", factor * share)
        reduced.angle = 1.0
        assert (found.together(reduced) is not None) is there
    # A misfit of PLAIN is none, whatever excuses it.
    misfit = share * float(np.linalg.norm(reduced.right))
    for factor, there in ((0.99, True), (1.01, False)):
        monkeypatch.setattr(conflicts, "PLAIN", factor * misfit)
        assert (found.together(reduced) is not None) is there


@pytest.mark.parametrize(
    ("plain", "defect", "said"),
    [
        (1.0, 1e-6, "proof"),
        (1.0, 5e-4, "doubt"),
        (0.8, 5e-4, "proof"),
        (0.8, 1e-2, "doubt"),
        (0.8, 1.0, "nothing"),
    ],
)
def test_what_is_claimed_doubted_or_left_alone(
    plain: float, defect: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a misfit of 0.89: from PLAIN on less is asked of R."""
    found, reduced = posed()
    monkeypatch.setattr(infeasibility, "PLAIN", plain)
    monkeypatch.setattr(conflicts, "defect_of", lambda pairs: defect)
    assert (found.together(reduced) is not None) is (said == "proof")
    assert ("all agents together" in found.doubt) is (said == "doubt")


def test_what_one_agents_rows_leave_of_a_right_hand_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """x = 4, 2 x = 2 and (3, 4)'x' = 5: unit rows leave (3, -3, 0) / 2 of (4, 1, 1)."""
    block = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, 4.0]])
    right = np.array([4.0, 2.0, 5.0])
    space = row_space(block)
    found = contradiction(block, right, space)
    assert found is not None
    scaled = space.inverse_lengths * right
    outside = scaled - space.left @ (space.left.T @ scaled)
    assert np.abs(found.price) == pytest.approx(
        np.abs(space.inverse_lengths * outside) / np.linalg.norm(outside)
    )
    assert found.value == pytest.approx(float(np.linalg.norm(outside)))
    assert found.sure == pytest.approx(found.value)
    assert found.defect <= 1e-15
    for stored in (sp.csr_array(block), aslinearoperator(block)):
        again = contradiction(stored, right, space)
        assert again is not None
        assert (again.value, again.defect) == (found.value, found.defect)
    # Below SEEN for every row, beside the scaled right-hand side, it is rounding.
    share = float(np.linalg.norm(outside) / np.linalg.norm(scaled)) / math.sqrt(3)
    monkeypatch.setattr(own_rows, "PLAIN", math.inf)
    for factor, there in ((0.99, True), (1.01, False)):
        monkeypatch.setattr(own_rows, "SEEN", factor * share)
        assert (contradiction(block, right, space) is not None) is there
    for factor, there in ((0.99, True), (1.01, False)):  # or PLAIN, whatever it is beside
        monkeypatch.setattr(own_rows, "PLAIN", factor * float(np.linalg.norm(outside)))
        assert (contradiction(block, right, space) is not None) is there


@pytest.mark.parametrize("block", ["C", "D"])
def test_an_agent_that_contradicts_itself_is_named(block: str) -> None:
    """u = 1 and 2 u = 6, by agent 1 alone; nobody has rows of the other kind."""
    f = Quadratic(np.eye(2), np.zeros(2))
    rows = {block: [[1.0], [2.0]], block.translate({67: "c", 68: "e"}): [1.0, 6.0]}
    agents = [Agent(f, A=[[1.0]], b=[0.0]), Agent(f, A=[[1.0]], b=[0.0], **rows)]
    work = Workspace(Problem(agents, q=1), InProcess(Network.complete(2)))
    found = Conflicts(work).own()
    assert found is not None
    assert f"agent 1's own equations {block}" in found.message
    prices = found.local if block == "C" else found.shared
    assert list(prices) == [1]
    assert prices[1] @ np.array([1.0, 2.0]) == pytest.approx(0.0, abs=1e-15)
    assert abs(prices[1] @ np.array([1.0, 6.0])) == pytest.approx(found.value)
    assert not (found.shared if block == "C" else found.local)


def test_blocks_take_part_beside_the_whole() -> None:
    """Above a millionth of lambda, which is agent 1's or the coupled price's."""
    found = Weighing(Recovery(posed()[0].work))
    norms = {"coupled": 1.0, "shared": 2.0}
    local = [np.array([2e-6]), np.array([1e3])]
    shared = [np.array([2e-3]), np.array([5e-4])]

    def said(coupled: float, length: float) -> str:
        prices = Lambda(np.array([coupled]), local, shared)
        return found.certificate(prices, Weighed(-3.0, 2.0, 0.5, 1.0, length), norms).message

    weights: dict[str, list[int]] = {"coupled": [0], "C": [1], "D": [0]}
    assert said(0.5, 1e3) == described(weights, norms)
    weights = {"coupled": [0], "C": [], "D": []}
    assert said(1e12, 1e12) == described(weights, norms)
    prices = Lambda(np.array([0.5]), local, shared)
    proof = found.certificate(prices, Weighed(-3.0, 2.0, 0.5, 1.0, 1e3), norms)
    assert (proof.value, proof.defect, proof.radius) == (-2.0, 0.5, 4.0)  # not 3 / 0.5
