"""When a contradiction is claimed, doubted or left alone, and how multipliers are sharpened."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import conflicts, own_rows
from ccmac.certificates.conflicts import Conflicts
from ccmac.certificates.infeasibility import (
    DOUBTED,
    EXACT_REACH,
    PLAIN,
    REACH,
    may_contradict,
    proves,
)
from ccmac.inputs import Array
from ccmac.linalg.ranks import Doubt
from ccmac.linalg.tolerances import EPS

BLOCK = np.array([[3.0], [-4.0]])
RIGHT = np.array([2.0, 5.0])
PRICE = np.array([0.5, -0.25])
NOISE = 4 * EPS * (0.5 * 2.0 + 0.25 * 5.0)  # what right-hand sides may be off by as doubles
SIZE = 6.0  # of the closest point


def told(
    monkeypatch: pytest.MonkeyPatch,
    agree: bool | None,
    seen: tuple[float, float] | None,
    **more: Any,
) -> tuple[float, float, bool]:
    """(value, defect, whether it is claimed) where ``seen`` is (sure, defect)."""

    def contradiction(block: Any, right: Any, space: Any, *, exact: bool) -> Any:
        assert (block is BLOCK, right is RIGHT, exact) == (True, True, agree is False)
        return (
            None
            if seen is None
            else Fake(price=PRICE, value=0.7, sure=seen[0] + NOISE, defect=seen[1])
        )

    monkeypatch.setattr(own_rows, "contradiction", contradiction)
    known = {"doubt": Doubt.NONE, "condition": 9.0, **more}
    space: Any = Fake(**known, agrees=lambda right: agree, coordinates=lambda right: [SIZE])
    value, defect, found = own_rows.of_rows(BLOCK, RIGHT, space)
    return value, defect, found is not None


def test_without_a_contradiction_the_condition_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for agree in (True, None, False):
        assert told(monkeypatch, agree, None) == (0.0, 9.0, False)
    for doubt, said in ((Doubt.CONVENTION, 9.0), (Doubt.ROUNDING, 1 / EPS)):
        assert told(monkeypatch, None, None, doubt=doubt) == (0.0, said, False)


def test_what_is_seen_is_claimed_beyond_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    far = 0.5
    for agree in (None, False):
        assert told(monkeypatch, agree, (1.01 * REACH * SIZE * far, far)) == (0.7, far, True)
    # Rows that agree to the last digit contradict nothing, unless they depend by convention.
    assert told(monkeypatch, True, (1e9, far)) == (0.0, 9.0, False)
    sure = 1.01 * REACH * SIZE * far
    assert told(monkeypatch, True, (sure, far), doubt=Doubt.CONVENTION) == (0.7, far, True)
    for doubt in (Doubt.ROUNDING, Doubt.OPINION):
        assert told(monkeypatch, True, (sure, far), doubt=doubt) == (-0.7, far, False)


def test_what_is_less_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    for factor, value in ((1.01, -0.7), (0.99, 0.0)):
        said = told(monkeypatch, None, (factor * DOUBTED * SIZE * 0.5, 0.5))
        assert said == (value, 0.5 if value else 9.0, False)
    # Of what exact arithmetic has found everything is, but for the rounding of right-hand sides.
    assert told(monkeypatch, False, (1e-9, 0.5)) == (-0.7, 0.5, False)
    assert told(monkeypatch, False, (-1e-9, 0.5)) == (0.0, 9.0, False)
    assert told(monkeypatch, None, (-1e-9, 0.0)) == (0.0, 9.0, False)


@pytest.mark.parametrize("size", [0.25, SIZE])
@pytest.mark.parametrize(
    ("agree", "misfit", "reach"),
    [
        (False, PLAIN, EXACT_REACH),
        (False, 1e-9, EXACT_REACH),
        (None, PLAIN, EXACT_REACH),
        (None, 0.99 * PLAIN, REACH),
        (True, PLAIN, REACH),
    ],
)
def test_what_it_takes_to_prove_one(
    agree: bool | None, misfit: float, reach: float, size: float
) -> None:
    """R must exceed so many times the closest point, and one; a defect is that of doubles."""
    edge = misfit / (reach * max(1.0, size))
    assert proves(misfit, 0.999 * edge, size, agree)
    assert not proves(misfit, 1.001 * edge, size, agree)
    far = misfit / (reach * EPS)
    assert proves(misfit, 0.0, 0.999 * far, agree)
    # Multipliers that cancel better are believed where nothing looks rounded.
    assert proves(misfit, 0.0, 1.001 * far, agree) is (agree is False)
    assert proves(misfit, 0.999 * misfit / (REACH * 1e12), 1e12, agree) is (agree is False)
    assert not proves(misfit, 1.001 * misfit / (REACH * 1e12), 1e12, agree)
    assert not proves(0.0, 0.0, 1.0, agree)


def test_what_may_contradict() -> None:
    """What does not agree, and what does where rows depend on others by convention alone."""
    for doubt in Doubt:
        assert may_contradict(None, doubt)
        assert may_contradict(False, doubt)
        assert may_contradict(True, doubt) is (doubt == Doubt.CONVENTION)


def test_multipliers_are_sharpened_pass_by_pass() -> None:
    """Three quarters of what is left are found at a time."""
    draw = np.random.default_rng(0).standard_normal
    M = draw((2, 4))
    image = draw(4)
    basis = np.linalg.qr(M.T)[0]
    space: Any = Fake(
        basis=basis, multipliers=lambda v: 0.75 * np.linalg.lstsq(M.T, basis @ v, rcond=None)[0]
    )
    best = np.linalg.lstsq(M.T, -image, rcond=None)[0]
    for passes in (1, 2, 3):
        found = own_rows.sharpened(space, M, image.astype(np.longdouble), passes)
        assert found.dtype == np.longdouble
        assert found.astype(float) == pytest.approx((1 - 0.25**passes) * best)
    found = own_rows.sharpened(space, M, image.astype(np.longdouble))
    assert found.astype(float) == pytest.approx((1 - 0.25**own_rows.PASSES) * best)


def test_a_sum_is_zero_modulo_primes_or_not_at_all() -> None:
    one = np.ones((1, 1))
    tiny = np.array([[2.0**-200]])
    pairs = [(one, np.array([3.0])), (one, np.array([-3.0]))]
    assert own_rows._cancel(pairs)
    assert own_rows.defect_of(pairs) == 0.0
    # What the long format swallows counts.
    hidden = [*pairs, (tiny, np.array([1.0]))]
    assert not own_rows._cancel(hidden)
    long = (
        one.astype(np.longdouble) + np.longdouble(2.0) ** -60,
        np.array([0.0]),
    )  # more digits than doubles
    assert not own_rows._cancel([*pairs, long])
    prime = float(own_rows.PRIMES[0])
    assert not own_rows._cancel([(one, np.array([prime]))])
    three = [(one, np.array([v])) for v in (5.0, -2.0, -3.0)]
    assert own_rows._cancel(three)
    assert not own_rows._cancel(three[:2])


# -- among equations that all know -----------------------------------------------------------------
class Along:
    """What is proved of multipliers as they are, and once they are sharpened, is made up."""

    def __init__(
        self,
        plain: tuple[float, float],
        sharp: tuple[float, float],
        agree: bool | None,
        **more: Any,
    ) -> None:
        found: Any = object.__new__(Conflicts)
        self.asked: list[tuple[list[float], int]] = []

        def weighed(reduced: Any, scaled: Any, passes: int) -> Any:
            self.asked.append((scaled.tolist(), passes))
            sure, defect = plain if len(self.asked) == 1 else sharp
            value = 0.25 * len(self.asked)
            return Fake(value=value, sure=sure, defect=defect, size=SIZE)

        found.doubt = ""
        found._weighed = weighed
        found._sharpened = lambda reduced, scaled: scaled / 2
        found._certificate = lambda reduced, outside, seen: (outside, seen.value)
        known: Any = Fake(agree=agree, **{"doubt": Doubt.NONE, **more})
        self.said = found._along(known, np.array([3.0, -4.0]))
        self.doubt = found.doubt


SMALL = 1e-9  # of multipliers that cancel so well, misfits are below PLAIN
CLEAR = (1.01 * REACH * SIZE * SMALL, SMALL)
FAINT = (0.5 * SMALL, SMALL)
EXACT, BELOW = ((factor * EXACT_REACH * SIZE * SMALL, SMALL) for factor in (1.01, 0.99))


@pytest.mark.parametrize(
    ("agree", "plain", "sharp", "more", "said"),
    [
        (None, CLEAR, FAINT, {}, "proof"),
        (False, CLEAR, FAINT, {}, "proof"),
        (True, CLEAR, FAINT, {}, "nothing"),
        (True, CLEAR, FAINT, {"doubt": Doubt.ROUNDING}, "doubt"),
        (True, CLEAR, FAINT, {"doubt": Doubt.CONVENTION}, "proof"),
        (True, FAINT, CLEAR, {"doubt": Doubt.CONVENTION}, "nothing"),
        (True, CLEAR, FAINT, {"doubt": Doubt.OPINION}, "doubt"),
        (None, FAINT, CLEAR, {}, "sharp proof"),
        (None, FAINT, EXACT, {}, "sharp doubt"),
        (None, FAINT, (1.01 * PLAIN, PLAIN / (EXACT_REACH * SIZE)), {}, "sharp proof"),
        (None, FAINT, (1.01 * DOUBTED * SIZE * SMALL, SMALL), {}, "sharp doubt"),
        (None, FAINT, (0.99 * DOUBTED * SIZE * SMALL, SMALL), {}, "sharp nothing"),
        (False, FAINT, EXACT, {}, "sharp proof"),
        (False, FAINT, BELOW, {}, "sharp doubt"),
        (False, FAINT, (1e-15, SMALL), {}, "sharp doubt"),
        (False, FAINT, (0.0, SMALL), {}, "sharp nothing"),
    ],
)
def test_what_is_said_along_a_direction(
    agree: bool | None, plain: Any, sharp: Any, more: dict[str, Any], said: str
) -> None:
    found = Along(plain, sharp, agree, **more)
    sharper = said.startswith("sharp")
    direction = [0.6, -0.8]
    end = 0.5**conflicts.PASSES
    assert found.asked[0] == (pytest.approx(direction), 1)
    if sharper:
        assert found.asked[1] == (pytest.approx([end * v for v in direction]), conflicts.PASSES)
    assert len(found.asked) == 1 + sharper
    assert (found.said is not None) is said.endswith("proof")
    if found.said is not None:
        assert (found.said[0].tolist(), found.said[1]) == ([3.0, -4.0], 0.25 * (1 + sharper))
    assert ("all agents together" in found.doubt) is said.endswith("doubt")
    if found.doubt:
        assert f"by {0.25 * (1 + sharper):.2g}" in found.doubt


def test_multipliers_of_all_rows_lose_what_is_not_cancelled() -> None:
    """lambda - (T T')^+ T (T'lambda) in scaled rows, what the C_i cancel left out."""
    draw = np.random.default_rng(4).standard_normal
    m = 2
    q = 3
    d = 4
    n = 2
    unit = np.array([0.5, 2.0])
    A = draw((n, m, d))
    C = draw((n, 1, d))
    Bbar = draw((m, q))
    D = draw((2, q))
    kernels = []
    inside = []
    for k in range(n):
        V = np.linalg.qr(C[k].T, mode="complete")[0]
        kernels.append(Fake(basis=V[:, 1:], space=_space(C[k], V[:, :1])))
        inside.append(A[k] @ V[:, 1:])
    T = np.block(
        [[unit[:, None] * np.hstack(inside), unit[:, None] * Bbar], [np.zeros((2, n * (d - 1))), D]]
    )
    weight = np.diag([1.0, 2.0, 3.0, 4.0])
    reduced: Any = Fake(
        A=list(A),
        C=list(C),
        kernels=kernels,
        Bbar=Bbar.astype(np.longdouble),
        D=D,
        unit=unit,
        prices=lambda rows: (unit * rows[:m], rows[m:]),
        inverse_gram=lambda rows: weight @ rows,
    )
    found: Any = object.__new__(Conflicts)
    found.runtime = Fake(gather=lambda rows: rows)
    scaled = draw(4)
    said = found._sharpened(reduced, scaled.astype(np.longdouble))
    assert said.astype(float) == pytest.approx(scaled - weight @ T @ (T.T @ scaled))


def _space(C: Array, basis: Array) -> Any:
    return Fake(basis=basis, multipliers=lambda v: np.linalg.lstsq(C.T, basis @ v, rcond=None)[0])


def test_what_is_there_exactly_is_looked_for_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the closest point where there are C_i; in rounded numbers only what stands out."""
    found: Any = object.__new__(Conflicts)
    null = np.array([[0.6], [0.8]])
    seen = 2.2
    hidden = 1e-15
    reduced = Fake(agree=False, U_null=null, right=np.array([1.0, 2.0]), angle=0.0)
    asked: list[Any] = []
    left = [seen]
    monkeypatch.setattr(conflicts, "unmet", lambda work, reduced, passes: ("closest", left[0]))

    def along(reduced: Any, outside: Any) -> str:
        asked.append(outside)
        found.doubt = "why"
        return "found"

    found.work = Fake(reduced=reduced, doubts=[])
    found.doubt = ""
    found._along = along
    assert found.late() == "found"
    assert asked[0] == pytest.approx(2.2 * null[:, 0])
    assert found.work.doubts == ["why"]
    found._heeded(None)
    assert found.work.doubts == ["why"]  # once
    assert found.late() is None  # there is doubt already
    reduced.angle = 1e-9
    for agree, plain, more, looked in (
        (True, seen, seen, False),
        (None, seen, seen, True),
        (None, seen, hidden, False),
        (None, hidden, seen, False),
        (False, hidden, seen, True),
        (False, seen, hidden, True),
        (False, seen, 0.0, False),
    ):
        reduced.agree, reduced.right = agree, plain * null[:, 0] + np.array([0.8, -0.6])
        found.doubt, left[0] = "", more
        asked.clear()
        assert (found.late() == "found") is looked, (agree, plain, more)
        assert asked == ["closest"] * looked
    found.work.reduced = None
    found.doubt = ""
    assert found.late() is None


@pytest.mark.parametrize(("own", "together"), [("own", "both"), (None, "both"), (None, None)])
def test_what_shows_before_the_first_step(own: str | None, together: str | None) -> None:
    found: Any = object.__new__(Conflicts)
    found.doubt, found.work = "why", Fake(reduced="T", doubts=["other"])
    found.own = lambda: own
    found.together = lambda reduced: together if reduced == "T" else None
    assert found.early() == (own or together)
    assert found.work.doubts == ["other", "why"]
    found.work.reduced = None
    found.together = None
    found.work.told = None
    assert found.early() == own
    found.work.told = "squares"
    found._from_sums = lambda told: f"from {told}"
    assert found.early() == (own or "from squares")
