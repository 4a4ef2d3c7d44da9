"""Options and warm starts that make no sense: one short line and exit code 2."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmac.problem import Problem
from cli.conftest import Run


def member(declared: tuple[int, ...], values: int = 0) -> bytes:
    """An array file whose header declares a shape of its own."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": declared}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + np.zeros(values).tobytes()


def archive(compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return stream.getvalue()


def saved_arrays(problem: Problem, **changed: Any) -> bytes:
    arrays: dict[str, Any] = {"z": np.zeros(problem.q), "coupled": np.zeros(problem.m)}
    for i in range(problem.n):
        arrays |= {f"x{i}": np.zeros(problem.d[i]), f"local{i}": np.zeros(problem.p[i])}
        arrays |= {f"shared{i}": np.zeros(problem.r[i]), f"consensus{i}": np.zeros(problem.q)}
    stream = io.BytesIO()
    np.savez(stream, **(arrays | changed))
    return stream.getvalue()


def npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda _: b"", "plain arrays"),
        (lambda _: npy(), "plain arrays"),
        (lambda _: archive(z=member((10**13,))), "plain arrays"),
        (lambda _: archive(z=member((10**30, 10**30))), "plain arrays"),
        (lambda _: archive(z=member((2,), 3)), "plain arrays"),
        (lambda _: archive(zipfile.ZIP_DEFLATED, z=member((10**6,), 10**6)), "plain arrays"),
        (lambda _: archive(z=b"hello"), "plain arrays"),
        (lambda p: saved_arrays(p)[:-50], "plain arrays"),
        (lambda p: saved_arrays(p, z=np.array(["a"])), "is not a solution"),
        (lambda p: saved_arrays(p, z=np.zeros(2, complex)), "is not a solution"),
        (lambda p: saved_arrays(p, z=np.array([np.nan, 1.0])), "NaN"),
        (lambda p: saved_arrays(p, x0=np.zeros(1)), "x0 has other sizes"),
        (lambda p: saved_arrays(p, x0=np.zeros((2, 2))), "x0 has other sizes"),
        (lambda p: saved_arrays(p, coupled=np.zeros(7)), "coupled has other sizes"),
        (lambda p: saved_arrays(p, coupled=np.array(3.0)), "coupled has other sizes"),
        (lambda p: saved_arrays(p, consensus1=np.zeros(7)), "consensus1 has other sizes"),
        (lambda p: saved_arrays(p, local1=np.zeros(1)), "local1 has other sizes"),
    ],
)
def test_warm_starts(
    run: Run, saved: Path, tmp_path: Path, content: Callable[[Problem], bytes], words: str
) -> None:
    problem = Problem.load(saved / "dispatch")
    (tmp_path / "solution.npz").write_bytes(content(problem))
    told = run("solve", saved / "dispatch", "--network", "ring", "--warm-start", tmp_path)
    assert told.code == 2
    assert words in told.err
    assert told.err.count("\n") == 1


def test_a_fitting_warm_start_is_taken(run: Run, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "solution.npz").write_bytes(saved_arrays(Problem.load(saved / "dispatch")))
    told = run("solve", saved / "dispatch", "--network", "ring", "--warm-start", tmp_path)
    assert told.code == 0
