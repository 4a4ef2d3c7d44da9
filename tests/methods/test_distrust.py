"""State from a file is checked: bounds hold whatever it says, and nonsense is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates.proof import Proof
from ccmac.errors import InputError
from ccmac.methods import CrossApapc, CrossCg, CrossLbfgs
from ccmac.paper.instances import random_quadratic, solve_kkt
from rewriting import Arrays, rewrite

NETWORK = "ring"


def nothing(_: Any) -> None:
    return None


@pytest.fixture
def problem() -> ccmac.Problem:
    return random_quadratic(7, n=4)


def stored(problem: ccmac.Problem, place: Path, method: Any, count: int = 12) -> dict[str, Any]:
    asked: dict[str, Any] = {"method": method, "tol": 1e-8, "checkpoint": place}
    ended = ccmac.solve(problem, NETWORK, max_iterations=count, **asked)
    assert ended.status == "max_iterations"
    return asked


@pytest.mark.parametrize(
    ("method", "name", "count"),
    [(CrossApapc(), "p", 12), (CrossCg(), "u", 4), (CrossLbfgs(), "h", 4)],
)
def test_a_false_dual_state_is_not_believed(
    problem: ccmac.Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: Any,
    name: str,
    count: int,
) -> None:
    """Where the certificate rests on the method's dual state, not on a proof of its own."""
    exact = ccmac.solve(problem, NETWORK, tol=1e-11)
    monkeypatch.setattr(Proof, "of", classmethod(lambda cls, work: None))
    asked = stored(problem, tmp_path, method, count)

    def shift(arrays: Arrays) -> None:
        for key in arrays:
            if key.endswith(f"/vector:{name}"):
                arrays[key] = arrays[key] + 0.5

    rewrite(tmp_path, shift, nothing)
    ended = ccmac.solve(problem, NETWORK, max_iterations=400, **asked)
    gap = np.concatenate([*ended.x, ended.z]) - np.concatenate([*exact.x, exact.z])
    assert np.linalg.norm(gap) <= ended.error_bound + exact.error_bound


@pytest.mark.parametrize("method", [CrossApapc(), CrossCg(), CrossLbfgs()])
def test_an_honest_dual_state_is_believed(
    problem: ccmac.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    """The resumed run ends at the same iteration, with the same bits and the same bill."""
    monkeypatch.setattr(Proof, "of", classmethod(lambda cls, work: None))
    whole = ccmac.solve(problem, NETWORK, method, 1e-8)
    resumed = ccmac.solve(problem, NETWORK, **stored(problem, tmp_path, method, 4))
    assert resumed.iterations == whole.iterations
    assert resumed.error_bound == whole.error_bound
    assert resumed.ledger.as_dict()["solve"] == whole.ledger.as_dict()["solve"]
    assert resumed.ledger.as_dict()["monitor"] == whole.ledger.as_dict()["monitor"]


def put(key: str, value: Any) -> Callable[[Any], None]:
    """Set an entry of the manifest, named by a path of keys."""

    def change(manifest: Any) -> None:
        *path, last = key.split("/")
        for step in path:
            manifest = manifest[step]
        manifest[last] = value

    return change


def arrays(change: Callable[[Any], Any], name: str = "w") -> Callable[[Arrays], None]:
    def apply(held: Arrays) -> None:
        held[f"1/vector:{name}"] = change(held[f"1/vector:{name}"])

    return apply


@pytest.mark.parametrize(
    ("state", "manifest"),
    [
        (arrays(lambda a: a[:-1]), nothing),
        (arrays(lambda a: a[None]), nothing),
        (arrays(lambda a: a.astype(np.complex128)), nothing),
        (arrays(lambda a: a.astype(np.int64)), nothing),
        (arrays(lambda a: np.full_like(a, np.nan)), nothing),
        (arrays(lambda a: np.full_like(a, np.inf), "p"), nothing),
        (lambda held: held.pop("2/vector:p"), nothing),
        (lambda held: [held.pop(k) for k in list(held) if k.startswith("3/")], nothing),
        (lambda held: held.update({"x/vector:p": np.zeros(1)}), nothing),
        (lambda held: held.update({"9" * 50 + "/a": np.zeros(1)}), nothing),
        (nothing, put("scalars", 3)),
        (nothing, put("ledger", [])),
        (nothing, put("ledger", {"solve": {"rounds": -1}})),
        (nothing, put("ledger", {"other": {}})),
        (nothing, put("stopping", {"next": "soon"})),
        (nothing, put("stopping/history", [[1]])),
        (nothing, put("planned", [0.0, 1.0])),
        (nothing, put("planned", "x")),
        (nothing, put("path", ["wider"] * 50)),
        (nothing, put("path", ["sideways"])),
        (nothing, put("chosen", {"name": "dpmm"})),
        (nothing, put("identity", None)),
        (nothing, put("identity/common", [])),
    ],
)
def test_a_damaged_state_is_one_line(
    problem: ccmac.Problem, tmp_path: Path, state: Any, manifest: Any
) -> None:
    asked = stored(problem, tmp_path, CrossApapc())
    rewrite(tmp_path, state, manifest)
    with pytest.raises(InputError, match="checkpoint") as caught:
        ccmac.solve(problem, NETWORK, **asked)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_a_schedule_that_nobody_keeps_is_not_recalled(tmp_path: Path) -> None:
    """A run that a reference ends has no rule of its own: what a file says of one is left alone."""
    problem = random_quadratic(3, 4)
    given: dict[str, Any] = {"reference": solve_kkt(problem), "tol": 1e-12}
    whole = ccmac.solve(problem, "ring", "cross-apapc", max_iterations=8, **given)
    keep = {"path": tmp_path, "every": 4}
    ccmac.solve(problem, "ring", "cross-apapc", max_iterations=4, checkpoint=keep, **given)

    def told(manifest: Any) -> None:
        assert manifest["stopping"] == {}
        manifest["stopping"] = {"next": 3}

    rewrite(tmp_path, nothing, told)
    ended = ccmac.solve(problem, "ring", "cross-apapc", max_iterations=8, checkpoint=keep, **given)
    assert ended.iterations == 8
    assert np.array_equal(ended.z, whole.z)
