"""Contradictions from sums of squares, and what is asked before: made-up parts."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import closest
from ccmac.certificates.closest import CONFLICT, ClosestPoint, FromSums
from ccmac.certificates.weighing import Lambda, Weighed
from ccmac.inputs import Array

M = 2
Q = 3


class Made(FromSums):
    """Two agents, the second one without rows of D; sums, sharpening and weighing are made up."""

    def __init__(self, right: Array, null: Array) -> None:
        self.draw = np.random.default_rng(5).standard_normal
        U = np.linalg.qr(self.draw((4, 4)))[0]
        self.D = np.array([[3.0, 0.0, 4.0], [0.0, 0.5, 0.0]])
        self.e = np.array([2.0, -1.0])
        self.gram: Any = Fake(
            U_null=U[:, 3:] * null,
            U=U[:, :3],
            right=right,
            sigma=np.array([4.0, 2.0, 1.0]),
            unit=np.array([0.5, 4.0]),
            Bbar=self.draw((M, Q)),
            D=self.draw((2, Q)),
            inverse_gram=lambda v: v / 2,
            prices=lambda v: (3 * v[:M], 5 * v[M:]),
            hidden=lambda k: [(self.D, self.e)] if k == 0 else [],
            kernels=[Fake(point=np.array([1.0, 2.0])), Fake(point=np.array([2.0]))],
        )
        self.problem: Any = Fake(m=M, q=Q)
        self.runtime: Any = Fake(total=lambda rows: rows.sum(axis=0))
        self.sharpened, self.asked = 0, list[Any]()
        self.own: Any = Fake(
            local=lambda coupled: ("local", coupled.tolist()),
            weighed=self._weighed,
            certificate=lambda *parts: parts,
        )

    def _weighed(self, prices: Lambda, squares: list[float]) -> Weighed:
        self.asked.append((prices, squares))
        return Weighed(1.0, 0.5, 0.125, 3.0, 1.0)

    def _sharpened(self, coupled: Array, deltas: list[Array]) -> tuple[Array, list[Array]]:
        self.sharpened += 1
        return coupled, deltas


def test_without_a_misfit_there_is_nothing_to_weigh() -> None:
    made = Made(np.zeros(4), np.zeros(1))
    made.e = np.zeros(2)
    seen, found = made.found()
    assert (seen.value, seen.sure, seen.defect, seen.size, seen.length) == (0, 0, math.inf, 0, 0)
    assert (found, made.asked, made.sharpened) == (None, [], 0)


@pytest.mark.parametrize("scale", [0.25, 8.0])
@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize("block", ["coupled", "shared"])
def test_what_stays_violated_is_beside_one_or_the_right_hand_sides(
    scale: float, factor: float, block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(ClosestPoint, "__init__", lambda self, recovery: None)
    monkeypatch.setattr(ClosestPoint, "at", lambda self, *parts: asked.append(parts))
    norms = {"coupled": 0.0, "shared": 0.0, block: factor * CONFLICT * max(1.0, scale)}
    recovery: Any = Fake(scale=lambda: scale, coupling=Fake(width=4))
    work: Any = Fake(reduced=None, doubts=[])
    realized: Any = Fake(system=Fake(empty=True))
    assert closest.diagnosed(work, recovery, realized, np.zeros(3), norms) is None
    assert len(asked) == len(work.doubts) == int(factor > 1)
    for at, _, price, told in asked:
        assert (at is realized, price.tolist(), told is norms) == (True, [[0.0] * 4], True)


@pytest.mark.parametrize(
    ("width", "empty", "defect"), [(0, False, 1.0), (2, True, 1.0), (2, False, 0.0)]
)
def test_nothing_is_cancelled_where_nothing_can_be(width: int, empty: bool, defect: float) -> None:
    """No coupled rows, no system, or nothing left of K'lambda: multipliers of length one."""
    point = object.__new__(ClosestPoint)
    point.user = Fake(coupling=Fake(width=width), shared=Fake(empty=True))  # type: ignore[assignment]
    point.own = Fake(local=lambda coupled: coupled.tolist())  # type: ignore[assignment]
    realized: Any = Fake(space=None, system=Fake(empty=empty))
    prices = Lambda(np.array([3.0, -4.0]), [], [np.array([6.0])])
    said = point._cancelled(realized, prices, Weighed(1.0, 1.0, defect, 1.0, 2.0))
    assert (said.coupled.tolist(), said.local) == ([1.5, -2.0], [1.5, -2.0])
    assert [v.tolist() for v in said.shared] == [[3.0]]
