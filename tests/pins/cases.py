"""The pinned runs, and the one function that knows how options are handed to ``solve``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ccmac
from ccmac.methods.registry import parse
from pins.problems import posed

RUN = ("averaging", "costs", "fused")  # what belongs to a run and not to its method
PHASES = ("setup", "solve", "monitor")
DIGITS = 10


@dataclass(frozen=True)
class Case:
    """One run: ``stop`` is certified, reference, or a fixed number of iterations.

    ``options`` are flat, whoever owns them: a realization beside its degrees, say.
    """

    method: str
    problem: str
    stop: str | int = "certified"
    tol: float = 1e-6
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Readable and unique."""
        words = [f"{k}={_word(v)}" for k, v in self.options.items()]
        return " ".join([self.method, self.problem, str(self.stop), f"{self.tol:g}", *words])


def solved(
    problem: Any, network: Any, method: str, options: Mapping[str, Any], **common: Any
) -> ccmac.Result:
    """Hand flat options to ``solve``: the only place that knows who takes what."""
    chosen = parse(method, {k: v for k, v in options.items() if k not in RUN})
    if "costs" in options:
        common["costs"] = ccmac.Costs(**options["costs"])
    averaging = options.get("averaging", "auto")
    if "fused" in options:
        common["runtime"] = ccmac.InProcess(network, fused=options["fused"], averaging=averaging)
    return ccmac.solve(problem, network, chosen, averaging=averaging, progress=False, **common)


def run(case: Case) -> ccmac.Result:
    """Execute a case."""
    made = posed(case.problem)
    options = dict(case.options)
    common: dict[str, Any] = {"tol": case.tol}
    if case.stop == "reference":
        common["reference"] = made.reference
    if isinstance(case.stop, int):
        common["max_iterations"] = case.stop
    if options.pop("warm", False):
        rough = solved(made.problem, made.network, case.method, options, tol=1e-2)
        common["warm_start"] = rough
    return solved(made.problem, made.network, case.method, options, **common)


def record(result: ccmac.Result) -> dict[str, Any]:
    """What is pinned of a run; a unit that a phase does not use is left out."""
    ledger = {p: dict(sorted(result.ledger.of(p).items())) for p in PHASES}
    x = np.concatenate(result.x) if result.x else np.zeros(0)
    floats = {
        "objective": result.objective,
        "error_bound": result.error_bound,
        "relative_error": result.relative_error,
        "norm_x": float(np.linalg.norm(x)),
        "norm_z": float(np.linalg.norm(result.z)),
    }
    return {
        "status": result.status,
        "iterations": result.iterations,
        **ledger,
        "floats": {k: repr(rounded(v)) for k, v in floats.items()},
    }


def told(result: ccmac.Result) -> dict[str, Any]:
    """What a result says of how it was found: words and counts, the rest by its kind alone."""
    plan = result.plan
    shown = {} if plan is None else {"realization": plan.realization, "why": plan.why}
    settings = {} if plan is None else plan.settings
    found = {"certificates": result.certificates, "settings": settings, **shown}
    return {name: _kind(value) for name, value in found.items()}


def _kind(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _kind(item) for name, item in value.items()}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return "a number"
    return f"{len(value)} values" if isinstance(value, list | tuple | np.ndarray) else value


def rounded(value: float) -> float:
    """To ten significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{v}" for k, v in value.items()) + "}"
    return str(value)


def _many(
    method: str,
    problem: str,
    stops: tuple[str | int, ...],
    *variants: Mapping[str, Any],
    **more: Any,
) -> Iterator[Case]:
    for options in variants or ({},):
        for stop in stops:
            yield Case(method, problem, stop, options=options, **more)


ALL: tuple[str | int, ...] = ("certified", "reference", 12)
ENDS: tuple[str | int, ...] = ("certified", "reference")
PROVED: tuple[str | int, ...] = ("certified",)
KNOWN: tuple[str | int, ...] = ("reference",)


def _apapc() -> Iterator[Case]:
    name = "cross-apapc"
    canonical = {"realization": "canonical"}
    lifted = {"realization": "certified"}
    yield from _many(name, "quadratic", ALL, {}, canonical, lifted)
    yield from _many(
        name,
        "quadratic",
        PROVED,
        {"averaging": "tree"},
        {"averaging": "relay"},
        {"fused": False},
        {"inner": 3, "outer": 2},
        {"scale": 0.5},
        {"costs": {"gradient": 20.0, "round": 0.1}},
        {"certificates": {"cross_factor": 8.0}},
        {"warm": True},
        {"certificates": {"energy_radius": 5.0}},
        {**lifted, "delta": 0.3},
        {**lifted, "averaging": "tree"},
    )
    yield from _many(name, "quadratic", (2,), {**lifted, "fused": False})
    yield from _many(
        name,
        "quadratic",
        KNOWN,
        {**canonical, "inner": 8, "interval": "tight"},
        {**canonical, "rule": "exact"},
        {**canonical, "rule": "tight", "delta": 0.3},
        {**canonical, "interval": "minimal"},
        {**canonical, "model": "paper-6"},
        {**canonical, "certificates": {"cross_factor": 9.0}},
        {**canonical, "materialise": False},
    )
    for problem in ("ridge", "logistic", "B-zero", "no-B", "no-coupling", "free-x", "grid"):
        yield from _many(name, problem, ENDS)
    yield from _many(name, "stack", PROVED)
    yield from _many(name, "stack", (12,))
    yield from _many(name, "contradiction", PROVED)


def _others() -> Iterator[Case]:
    yield from _many("joint-apapc", "quadratic", ALL, {}, {"realization": "canonical"})
    yield from _many("joint-apapc", "quadratic", KNOWN, {"interval": "minimal"}, {"eta": 1.0})
    yield from _many("joint-apapc", "ridge", ENDS)
    yield from _many("cross-cg", "quadratic", ALL, {}, {"averaging": "tree"})
    for problem in ("ridge", "B-zero", "no-coupling", "grid"):
        yield from _many("cross-cg", problem, ENDS)
    yield from _many("cross-cg", "quadratic", PROVED, {"warm": True})
    for problem in ("quadratic", "ridge", "B-zero", "no-coupling", "grid"):
        yield from _many("cross-direct", problem, ENDS)
    # to a small error: that of a point on the way has the last digits of the processor, times 1e9
    yield from _many("cross-ipm", "quadratic", PROVED)
    yield from _many("cross-ipm", "quadratic", KNOWN, tol=1e-12)
    for problem in ("flat", "absolute", "hinge", "box"):
        yield from _many("cross-ipm", problem, (*PROVED, 3))
    yield from _many("cross-lbfgs", "quadratic", ALL)
    yield from _many("cross-lbfgs", "logistic", ENDS, {}, {"averaging": "tree"})
    yield from _many("auto", "quadratic", PROVED)
    for problem in ("flat", "absolute", "composite"):
        yield from _many("auto", problem, PROVED, tol=1e-3)


def _convex() -> Iterator[Case]:
    name = "cross-continuation"
    loose = {"tol": 1e-3}
    canonical = {"realization": "canonical"}
    lifted = {"realization": "certified"}
    yield from _many(name, "flat", PROVED, {}, canonical, lifted, **loose)
    yield from _many(name, "flat", (15,), {}, **loose)
    paper = {"schedule": "certified", "radius": 3.0, "accuracy": 0.5}
    yield from _many(
        name,
        "flat",
        (40,),
        paper,
        {**paper, "multiplier_budget": 2.0},
        {**paper, **canonical},
        {"schedule": "practical"},
        **loose,
    )
    yield from _many(name, "quadratic", KNOWN, **loose)
    yield from _many(name, "stack", PROVED, **loose)
    name = "cross-sliding"
    for problem in ("absolute", "hinge", "composite"):
        yield from _many(name, problem, PROVED, **loose)
    yield from _many(name, "absolute", PROVED, canonical, lifted, {"averaging": "tree"}, **loose)
    paper = {"schedule": "certified", "radius": 3.0, "accuracy": 40.0}
    yield from _many(name, "absolute", (2,), paper, {**paper, "lipschitz": 9.0}, **loose)
    yield from _many(name, "box", PROVED, {"scale": 1.0}, **loose)
    yield from _many(name, "box", (40,), {}, **loose)
    yield from _many(name, "quadratic", KNOWN, **loose)


def _baselines() -> Iterator[Case]:
    for name in ("condat-vu", "pdhg", "papc"):
        yield from _many(name, "quadratic", ALL)
        settings = ({}, {"balance": 0.5}, {"tune": "grid"}, {"scale": 1.0})
        yield from _many(name, "ridge", KNOWN, *settings)
    for name in ("dpmm", "tracking-admm"):
        yield from _many(name, "quadratic", ALL)
        yield from _many(
            name,
            "ridge",
            KNOWN,
            {"reduction": "R2"},
            {"reduction": "R3"},
            {"penalty": 0.3},
            {"tune": "grid"},
        )
    yield from _many("dpmm", "ridge", KNOWN, {"reduction": "R2", "proximal": 0.1})
    yield from _many("coupled-yarmoshik", "quadratic", ("reference", 12))
    yield from _many("coupled-yarmoshik", "ridge", ENDS, {"reduction": "R2"}, {"reduction": "R3"})
    yield from _many("mixed-yarmoshik", "B-zero", ALL)
    yield from _many("mixed-yarmoshik", "B-zero", (12,), {"fused": False})
    yield from _many("mixed-yarmoshik", "ridge", ENDS, {"reduction": "R2"}, {"reduction": "R3"})
    # Certified runs end so close to the solution that their bounds are rounding.
    ends = ("reference", 4)
    yield from _many("cross-newton", "logistic", ends, {}, {"sketch": 1}, {"averaging": "tree"})
    yield from _many("cross-newton", "logistic", ends, {"reveal": "sketch"})
    yield from _many("auto", "logistic", (4,))


def _ways() -> Iterator[Case]:
    """Where runs are after a few steps: what a certificate or the solution would make good."""
    newton: tuple[str | int, ...] = (1, 2, 3, 5, 8)
    yield from _many("cross-newton", "uneven", newton, {"sketch": 1}, {"sketch": 4})
    yield from _many("cross-newton", "smooth", (1, 2, 3, 5))
    yield from _many("cross-lbfgs", "smooth", (2, 4, 8, 16))
    yield from _many("cross-apapc", "smooth", (1, 7))
    yield from _many("joint-apapc", "smooth", (1, 7))
    yield from _many("cross-cg", "quadratic", (1, 3))
    yield from _many("cross-cg", "ridge", (1, 3), {"sketch": 2})
    for problem in ("absolute", "hinge", "box"):
        yield from _many("cross-ipm", problem, (1, 2, 5))
    yield from _many("cross-ipm", "absolute", (1, 3), {"warm": True})
    yield from _many("cross-ipm", "long", (*PROVED, 1, 3))
    yield from _many("cross-ipm", "long", (1,), {"warm": True})
    name = "cross-continuation"
    loose = {"tol": 1e-3}
    yield from _many(name, "flat", (5, 60), **loose)
    yield from _many(name, "smooth", (10, 50), **loose)
    name = "cross-sliding"
    for problem in ("absolute", "hinge", "composite", "box"):
        yield from _many(name, problem, (5, 13, 60), **loose)
    paper = {"schedule": "certified", "radius": 4.0, "accuracy": 8.0}
    yield from _many(name, "apart", (3,), {}, paper, **loose)
    yield from _many("cross-continuation", "bowls", (6, 30), **loose)
    for name in ("condat-vu", "papc", "dpmm", "tracking-admm"):
        yield from _many(name, "smooth", (1, 9))
    yield from _many("pdhg", "quadratic", (1, 9))
    yield from _many("coupled-yarmoshik", "free-x", (1, 9))
    yield from _many("mixed-yarmoshik", "B-zero", (1, 5))


CASES = (*_apapc(), *_others(), *_convex(), *_baselines(), *_ways())
