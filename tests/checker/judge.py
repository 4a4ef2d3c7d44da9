"""Solves whose claims are held against ccmac-check, and nothing else."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ccmac_check

import ccmac
from adversarial.draft import Case
from ccmac.errors import InputError, MethodRefused

CLAIMS = ("optimal", "infeasible", "unbounded")


@dataclass
class Said:
    """A status ("refused": none), and what the checker says of it ("" where nothing is claimed)."""

    status: str
    word: str = ""
    why: str = ""
    result: Any = None

    @property
    def false(self) -> bool:
        """Whether the checker refuses it."""
        return self.word in ("not confirmed", "bad input")


def judged(problem: ccmac.Problem, result: ccmac.Result) -> tuple[str, str]:
    """The checker's word of a result, and why."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        problem.save(folder / "problem")
        result.save(folder / "result")
        return ccmac_check.check(folder / "problem", folder / "result")


def said(problem: ccmac.Problem, *how: Any, plain: Any = None, **options: Any) -> Said:
    """Solve and judge; ``plain`` is the problem without code, if it has some."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ccmac.solve(problem, *how, **options)
    except (InputError, MethodRefused) as refusal:
        return Said("refused", why=str(refusal))
    return of(plain or problem, result)


def of(problem: ccmac.Problem, result: ccmac.Result) -> Said:
    """What the checker says of a result that claims something."""
    result._problem = problem
    claimed = result.status in CLAIMS or result.error_bound == result.error_bound
    word, why = judged(problem, result) if claimed else ("", "")
    return Said(result.status, word, why, result)


def judge(case: Case, method: Any = "auto", **options: Any) -> Said:
    """The same of an adversarial case."""
    plain = replace(case.draft, storage="dense").problem()
    how = (case.network, method, case.tol)
    return said(case.draft.problem(), *how, plain=plain, **options)
