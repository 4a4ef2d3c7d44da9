"""What auto takes first, and what a run does when a method stalls: without solving anything."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.stopping import Check, Evidence
from ccmac.ledger import Cost, Costs, Ledger
from ccmac.methods import Auto, auto, run
from ccmac.methods.driver import Outcome
from ccmac.methods.run import DEFAULT_ITERATIONS, Run
from ccmac.plans import Alternative

STRONG = {"smooth", "strongly convex"}


def work(*able: str, **more: Any) -> Any:
    """A problem that can do this; nothing is summed, gathered or short unless said."""
    known = {
        "capabilities": frozenset(able),
        "stack": None,
        "hides": False,
        "gatherable": False,
        "gather_sums": lambda: None,
        "gather_constraints": lambda: None,
        "gather_explicit": lambda: None,
        "kept": 0,
        "curvature": Fake(factorable=True, separable=False, L=np.ones(2)),
        "runtime": Fake(averaging=Fake(rounds=2)),
        "ledger": Ledger(),
        "doubts": [],
    }
    return Fake(**{**known, **more})


def asked(**costs: float) -> Any:
    return Fake(costs=Costs(**costs))


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms that are looked for elsewhere: none."""
    monkeypatch.setattr(auto, "summable", lambda work: None)
    monkeypatch.setattr(auto, "solvable", lambda work: False)
    monkeypatch.setattr(auto, "affordable", lambda work, reduced: True)
    monkeypatch.setattr(auto, "compressible", lambda work: work.kept)
    monkeypatch.setattr(auto, "without_factorizations", lambda work: True)


def first(method: Auto, problem: Any, **costs: float) -> str:
    return method.ranked(problem, asked(**costs))[0][0].name


def test_smooth_and_strongly_convex() -> None:
    quadratic = (*STRONG, "quadratic")
    assert first(Auto(), work(*quadratic)) == "cross-cg"
    assert first(Auto(), work(*quadratic, gatherable=True)) == "cross-direct"
    assert first(Auto(), work(*quadratic, hides=True)) == "cross-direct"
    unclear = Fake(independent=False)
    clear = Fake(independent=True)
    assert first(Auto(), work(*quadratic, hides=True, gather_sums=lambda: unclear)) == "cross-cg"
    assert first(Auto(), work(*quadratic, hides=True, gather_sums=lambda: clear)) == "cross-direct"
    dense = Fake(factorable=False, separable=False, L=np.ones(2))
    assert first(Auto(), work(*quadratic, gatherable=True, curvature=dense)) == "cross-apapc"
    for asks in ({"realization": "canonical"}, {"access": "matvec"}):
        assert first(Auto(**asks), work(*quadratic, gatherable=True)) == "cross-apapc"
    assert first(Auto(access="factor"), work(*quadratic, gatherable=True)) == "cross-direct"
    assert first(Auto(), work(*quadratic, gatherable=True, stack=Fake())) == "cross-apapc"


def test_newton_where_it_has_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first(Auto(), work(*STRONG, gather_explicit=Fake)) == "cross-newton"
    assert first(Auto(), work("smooth", gather_explicit=Fake)) == "cross-newton"
    assert first(Auto(), work(*STRONG, gather_explicit=Fake), round=0.0) == "cross-apapc"
    assert first(Auto(), work(*STRONG, "quadratic", gather_explicit=Fake)) == "cross-cg"
    assert first(Auto(access="matvec"), work(*STRONG, gather_explicit=Fake)) == "cross-apapc"
    assert first(Auto(), work("prox", gather_explicit=Fake)) == "cross-sliding"
    monkeypatch.setattr(auto, "summable", lambda work: Fake())
    assert first(Auto(), work(*STRONG)) == "cross-newton"


def test_lbfgs_where_averagings_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds an averaging against the gradients of a minimisation."""
    edge = auto.ARGMIN_GRADIENTS / 2
    assert first(Auto(), work(*STRONG), round=edge) == "cross-lbfgs"
    assert first(Auto(), work(*STRONG), round=0.99 * edge) == "cross-apapc"
    assert first(Auto(), work(*STRONG), round=0.0, gradient=1.0) == "cross-apapc"
    assert first(Auto(), work(*STRONG), round=0.0, gradient=0.0, product=1.0) == "cross-apapc"
    assert first(Auto(realization="canonical"), work(*STRONG), round=edge) == "cross-apapc"
    monkeypatch.setattr(auto, "without_factorizations", lambda work: False)
    assert first(Auto(), work(*STRONG), round=edge) == "cross-apapc"


def test_without_strong_convexity(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = work("smooth", "quadratic", gatherable=True, gather_constraints=Fake)
    assert first(Auto(), flat) == "cross-direct"
    assert [m.name for m, _ in Auto().ranked(flat, asked())] == ["cross-direct", "cross-ipm"]
    assert Auto().finds_falls(flat)
    assert not Auto().finds_falls(work("smooth", "quadratic", gatherable=True))
    assert not Auto().finds_falls(work("smooth", "quadratic", gather_constraints=Fake))
    monkeypatch.setattr(auto, "affordable", lambda work, reduced: False)
    assert first(Auto(), flat) == "cross-continuation"
    assert first(Auto(), work("polyhedral", kept=3)) == "cross-ipm"
    assert first(Auto(), work("polyhedral", kept=3), round=0.0) == "cross-sliding"
    assert first(Auto(), work("polyhedral", "prox")) == "cross-sliding"
    monkeypatch.setattr(auto, "solvable", lambda work: True)
    assert first(Auto(), work("polyhedral")) == "cross-ipm"
    assert first(Auto(realization="canonical"), work("polyhedral")) == "cross-sliding"
    assert first(Auto(), work("smooth", "prox")) == "cross-continuation"
    apart = Fake(factorable=True, separable=True, L=np.ones(2))
    assert first(Auto(), work("smooth", "prox", curvature=apart)) == "cross-sliding"
    linear = Fake(factorable=True, separable=False, L=np.zeros(2))
    assert first(Auto(), work("smooth", curvature=linear)) == "cross-sliding"
    assert first(Auto(), work("smooth")) == "cross-continuation"
    assert first(Auto(), work()) == "cross-sliding"


def test_every_choice_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    quadratic = (*STRONG, "quadratic")
    flat = ("smooth", "quadratic")
    linear = Fake(factorable=True, separable=False, L=np.zeros(2))
    apart = Fake(factorable=True, separable=True, L=np.ones(2))
    one_sum = {"gatherable": True}
    several = {"gatherable": True, "gather_constraints": Fake}
    cases: list[tuple[Any, str]] = [
        (work(*STRONG, gather_explicit=Fake), "smooth, with Hessians"),
        (work(*quadratic, **one_sum), "quadratic, in one sum"),
        (work(*quadratic), "quadratic with cheap local solves"),
        (work(*STRONG), "smooth and strongly convex objectives"),
        (work(*flat, **several), "quadratic with flat directions"),
        (work("polyhedral", kept=3), "kinks beside a squared loss"),
        (work("smooth", "prox", curvature=apart), "smooth but not strongly convex, and every"),
        (work("prox"), "not smooth, and every"),
        (work("smooth", curvature=linear), "linear"),
        (work("smooth"), "smooth but not strongly convex"),
        (work(), "not smooth, and some"),
    ]
    for problem, why in cases:
        assert Auto()._first(problem, asked(round=0.1))[1].startswith(why)
    assert Auto()._first(work(*STRONG), asked(round=1e6))[1].startswith("averagings more expens")
    monkeypatch.setattr(auto, "solvable", lambda work: True)
    assert Auto()._first(work("polyhedral"), asked())[1].startswith("quadratic with bounds, kinks")


def test_what_comes_after_a_method_that_stalls() -> None:
    quadratic = work(*STRONG, "quadratic")
    assert [m.name for m, _ in Auto().ranked(quadratic, asked())] == ["cross-cg", "cross-apapc"]
    loose = work("smooth", gather_explicit=Fake)
    names = [m.name for m, _ in Auto().ranked(loose, asked())]
    assert names == ["cross-newton", "cross-continuation"]
    assert len(Auto().ranked(work("smooth"), asked())) == 1
    direct = work(*STRONG, "quadratic", gatherable=True)
    assert [m.name for m, _ in Auto().ranked(direct, asked())] == ["cross-direct", "cross-cg"]


@pytest.mark.parametrize(
    ("able", "chosen", "others"),
    [
        (("quadratic",), "cross-direct", ["cross-ipm", "cross-continuation"]),
        (tuple(STRONG), "cross-direct", ["cross-cg", "cross-apapc"]),
        (tuple(STRONG), "cross-cg", ["cross-direct", "cross-apapc"]),
        (tuple(STRONG), "cross-newton", ["cross-apapc"]),
        (("smooth",), "cross-newton", ["cross-continuation"]),
        (tuple(STRONG), "cross-lbfgs", ["cross-apapc"]),
        (("smooth",), "cross-ipm", ["cross-continuation"]),
        (("smooth", "prox"), "cross-ipm", ["cross-sliding"]),
        (("prox",), "cross-ipm", ["cross-sliding"]),
        (("smooth",), "cross-continuation", []),
    ],
)
def test_what_else_would_fit(able: tuple[str, ...], chosen: str, others: list[str]) -> None:
    from ccmac.methods.registry import parse

    found = Auto()._others(parse(chosen, {}), work(*able))
    assert [m.name for m in found] == others


def test_another_is_taken_where_bytes_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where its bill is lower even with more steps than are predicted; then the least."""
    bills = {"cross-cg": (10, 4.0), "cross-direct": (21, 1.0), "cross-apapc": (10**9, 1.0)}

    def forecast(method: Any, work: Any, request: Any) -> Any:
        bill, within = bills[method.name]
        step = Cost(gradients=1)
        return Alternative("sum", method.name, Cost(), step, bill, within, 0, "", float(bill))

    monkeypatch.setattr(auto, "forecast", forecast)
    problem = work(*STRONG, "quadratic", gatherable=True)
    assert first(Auto(), problem, byte=1e-9) == "cross-cg"
    assert first(Auto(), problem) == "cross-direct"
    bills["cross-apapc"] = (19, 1.0)
    assert first(Auto(), problem, byte=1e-9) == "cross-apapc"
    bills["cross-direct"], bills["cross-apapc"] = (20, 1.0), (21, 1.0)
    assert first(Auto(), problem, byte=1e-9) == "cross-direct"
    method, why = Auto().ranked(problem, asked())[0]
    told = Auto().alternatives(problem, asked(), method)
    assert [a.method for a in told] == ["cross-direct", "cross-cg", "cross-apapc"]
    assert "one sum" in why
    monkeypatch.setattr(auto, "forecast", lambda *given: None)
    assert Auto().alternatives(problem, asked(), method) == ()
    assert first(Auto(), problem, byte=1e-9) == "cross-direct"


# -- a run that goes on ----------------------------------------------------------------------------
def running(**more: Any) -> Any:
    made = Run(work(**more), Fake(name="one"), Fake(seed=0))  # type: ignore[arg-type]
    made._proving = lambda prepared, **given: prepared  # type: ignore[method-assign]
    return made


def test_the_next_method_is_prepared() -> None:
    found = running()
    assert found._following() is None
    found.others = [(Fake(name="two", prepare=lambda work, request: "ready"), "why")]
    found._proving = lambda prepared, **given: f"{prepared} and judged"
    assert found._following() == "ready and judged"
    assert (found.method.name, found.why, found.others) == ("two", "why", [])
    assert found.warnings == ["one stalled; went on with two"]


def found_at(bound: float, done: bool) -> Check:
    return Check(bound, Evidence("bound", 0.5 if done else 2.0))


def test_whether_the_tolerance_is_left_unproved() -> None:
    found = running(runtime=None)
    state: Any = None
    asked = []

    def final(done: bool) -> Any:
        return lambda iteration, state: (
            asked.append(1) or Fake(agreed=lambda runtime: found_at(0.5, done))
        )

    for rule, known, unproved, count in (
        (None, None, False, 0),
        (Fake(final=final(True)), None, False, 1),
        (Fake(final=final(False)), None, True, 1),
        (Fake(final=final(False)), True, False, 0),
        (Fake(final=final(True)), False, False, 1),
    ):
        asked.clear()
        outcome = Outcome("finished", state, 3, None if known is None else found_at(0.1, known))
        prepared: Any = Fake(stopping=rule, iteration=None)
        assert found._unproved(prepared, outcome) == unproved
        assert len(asked) == count


def test_a_stored_history_is_followed() -> None:
    refused: list[str] = []
    saver: Any = Fake(path=["wider", "next"], refuse=refused.append)
    found = running()
    found.others = [(Fake(name="two", prepare=lambda work, request: Fake(widen=None)), "why")]
    start = Fake(widen=lambda: Fake(widen=None, wide=True))
    refuted = list[Any]()
    found._proving = lambda prepared, **given: refuted.append(given) or prepared
    found.plan = lambda prepared: ("plan", prepared)
    assert found._again(start, None) is start
    assert found._again(start, saver).widen is None
    [(stalled, plan)] = found._before
    assert (stalled.wide, plan) == (True, ("plan", stalled))
    assert (found.method.name, refused) == ("two", [])
    assert refuted == [{"refuted": True}, {}]  # after a blow-up spectral constants count no more
    found._again(Fake(widen=None), Fake(path=["wider"], refuse=refused.append))
    found._again(Fake(widen=None), Fake(path=["next"], refuse=refused.append))
    found._again(Fake(widen=None), Fake(path=["other"], refuse=refused.append))
    assert len(refused) == 3


def test_probes_are_charged_and_doubts_heard() -> None:
    for doubts, heard in (([], 1), (["mine"], 0)):
        found = running(doubts=list(doubts))
        found._told = Fake(value=np.array([[3.0, 0.0], [5.0, 1.0]]))
        found._heed()
        assert found.work.ledger.of("setup")["gradients"] == 5
        assert len(found.work.doubts) == len(doubts) + heard
        found._heed()  # once
        assert found.work.ledger.of("setup")["gradients"] == 5
    calm = running()
    calm._told = Fake(value=np.zeros((2, 2)))
    calm._heed()
    assert not calm.work.doubts


@pytest.mark.parametrize(
    ("most", "horizon", "limit"), [(7, 5, 7), (None, 5, 5), (None, None, 200_000)]
)
def test_who_limits_a_run(
    most: int | None, horizon: int | None, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DEFAULT_ITERATIONS == 200_000
    told: list[Any] = []
    saved: list[Any] = []
    monkeypatch.setattr(run, "observer_of", lambda *given: None)

    def driven(iteration: Any, state: Any, settings: Any) -> Outcome:
        told.append(settings)
        return Outcome("max_iterations", state, 4)

    monkeypatch.setattr(run, "drive", driven)
    found = running(runtime=Fake(is_root=False, alone=False))
    found.request = Fake(tol=1e-6)
    monkeypatch.setattr(run.start, "first_state", lambda *given: "start")
    prepared: Any = Fake(iteration=Fake(), stopping="rule", horizon=horizon, predicted=None)
    limits = run.Limits(max_iterations=most, max_seconds=3.0, progress=False)
    saver: Any = Fake(
        bind=lambda *given: None,
        resume=lambda state: (2, "stored"),
        save=lambda *given: saved.append(given),
    )
    found._drive(prepared, limits, None, None)
    found._drive(prepared, limits, None, saver)
    assert [s.max_iterations for s in told] == [limit, limit]
    assert [s.first for s in told] == [0, 2]
    assert (told[0].max_seconds, told[0].stopping, told[0].begun) == (3.0, "rule", found.begun)
    assert saved == [(4, "stored")]
    assert math.isfinite(found.begun)
