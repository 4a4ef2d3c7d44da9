"""Saved problems and a way to run ``ccmac`` as the shell would see it, without a new process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ccmac.cli.main import main
from ccmac.objectives import L1
from ccmac.paper.instances import calibration, dispatch, infeasible
from ccmac.problem import Agent, Problem
from runtime.conftest import nobody_is_late

__all__ = ["nobody_is_late"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in an empty directory, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        shown = capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    return call


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories ``dispatch``, ``calibration``, ``contradiction`` and ``kinked`` in one folder."""
    folder = tmp_path_factory.mktemp("problems")
    dispatch(hours=2).problem.save(folder / "dispatch")
    calibration().problem.save(folder / "calibration")
    infeasible(0, "cross").save(folder / "contradiction")
    kinked = Agent(L1(1.0), A=np.eye(2), B=np.eye(2), b=[1.0, 2.0])
    Problem([kinked, kinked]).save(folder / "kinked")
    return folder
