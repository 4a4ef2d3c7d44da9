"""Every registered method for smooth strongly convex problems, on every kind of problem and graph.

It converges to an independent reference, its ledger grows by its declared cost every iteration, and
it refuses what it cannot do with a way out.
"""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.methods.registry import REGISTRY, parse
from methods.conformance.cases import AGENTS, Case, logistic, quadratic, ridge

METHODS = [name for name, m in REGISTRY.items() if "strongly convex" in m.needs]
PROBLEMS = ("quadratic", "ridge", "logistic")
NETWORKS = {"ring": ccmac.Network.ring(AGENTS), "grid": ccmac.Network.grid(2, AGENTS // 2)}
TOLERANCE = 1e-10


def case_for(method: str, kind: str) -> tuple[Case, dict[str, str]]:
    """The problem as the method can take it, and the reduction that it needs."""
    if kind == "quadratic":
        return quadratic(coupled_z=method != "mixed-yarmoshik"), {}
    reduced = {"reduction": "R2"} if method == "mixed-yarmoshik" else {}
    if method == "mixed-yarmoshik" and kind == "logistic":
        pytest.skip("its reductions pool squared distances of z")
    return (ridge() if kind == "ridge" else logistic()), reduced


@pytest.mark.parametrize(
    ("kind", "network"), [("quadratic", "grid"), ("ridge", "ring"), ("logistic", "ring")]
)
@pytest.mark.parametrize("method", METHODS)
def test_reaches_the_reference(method: str, kind: str, network: str) -> None:
    case, options = case_for(method, kind)
    if kind == "logistic" and "quadratic" in REGISTRY[method].needs:
        with pytest.raises(MethodRefused, match="quadratic"):
            ccmac.solve(case.problem, NETWORKS[network], method=method)
        return
    result = ccmac.solve(
        case.problem,
        NETWORKS[network],
        method=parse(method, options),
        tol=TOLERANCE,
        reference=case.reference,
        max_iterations=3000,
    )
    assert result.status == "optimal"
    assert result.relative_error <= TOLERANCE


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_iteration_costs_what_it_declares(method: str, kind: str) -> None:
    case, options = case_for(method, kind)
    if kind == "logistic" and "quadratic" in REGISTRY[method].needs:
        return
    runs = [
        ccmac.solve(
            case.problem,
            NETWORKS["ring"],
            method=parse(method, options),
            tol=1e-40,
            reference=case.reference,
            max_iterations=count,
        )
        for count in (2, 5)
    ]
    spent = runs[1].ledger.of("solve") - runs[0].ledger.of("solve")
    assert runs[1].plan is not None
    steps = runs[1].iterations - runs[0].iterations
    assert steps >= 2
    declared = dict(steps * runs[1].plan.iteration)
    # The longest message is a maximum: one before these steps may have been longer.
    assert spent["longest_message"] >= declared.pop("longest_message", 0)
    assert {k: v for k, v in spent.items() if k != "longest_message"} == declared


@pytest.mark.parametrize("method", METHODS)
def test_executed_rounds_agree_with_the_simulation(method: str) -> None:
    case, options = case_for(method, "quadratic")
    runs = [
        ccmac.solve(
            case.problem,
            method=parse(method, options),
            tol=1e-40,
            reference=case.reference,
            max_iterations=6,
            runtime=ccmac.InProcess(NETWORKS["ring"], fused=fused),
        )
        for fused in (True, False)
    ]
    assert dict(runs[0].ledger.of("solve")) == dict(runs[1].ledger.of("solve"))
    for a, b in zip(runs[0].x, runs[1].x, strict=True):
        if method.endswith("yarmoshik"):  # their graph filters are multiplied out
            assert a == pytest.approx(b, rel=1e-9, abs=1e-10)
        else:
            assert np.array_equal(a, b)


def test_mixed_refuses_coupling_through_z() -> None:
    with pytest.raises(MethodRefused, match=r"B = 0.*cross-apapc"):
        ccmac.solve(ridge().problem, NETWORKS["ring"], method="mixed-yarmoshik")


def test_pooling_refuses_general_blocks() -> None:
    for method in ("dpmm", "coupled-yarmoshik"):
        with pytest.raises(MethodRefused, match="R1"):
            ccmac.solve(
                quadratic().problem, NETWORKS["ring"], method=parse(method, {"reduction": "R2"})
            )


def test_unknown_names_are_named() -> None:
    with pytest.raises(InputError, match="R1, R2, R3"):
        ccmac.solve(ridge().problem, NETWORKS["ring"], method=ccmac.methods.Dpmm(reduction="R7"))
    with pytest.raises(InputError, match="grid"):
        ccmac.solve(ridge().problem, NETWORKS["ring"], method=ccmac.methods.Dpmm(tune="everything"))
