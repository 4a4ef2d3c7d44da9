"""Problems survive the disk; damaged, foreign or hostile directories are refused by name."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from scipy.sparse.linalg import aslinearoperator

import ccmac
from ccmac.errors import InputError
from ccmac.objectives import Custom, Logistic, Separable, SquaredDistance, named
from ccmac.objectives.custom import NAMED
from ccmac.storage import load_problem, save_problem
from objectives.examples import CASES, D, N, Q, build


def problem(n: int = 5) -> ccmac.Problem:
    """Dense, sparse, absent and empty blocks, several objectives."""
    rng = np.random.default_rng(0)
    agents = []
    for i in range(n):
        d = 2 + i
        agents.append(
            ccmac.Agent(
                Separable(SquaredDistance(0.1 + i), Logistic(y=np.array([1.0, -1.0, 1.0]))),
                A=rng.standard_normal((4, d))
                if i % 2
                else sp.random_array((4, d), density=0.4, rng=rng),
                B=0.1 * (i + 1) * sp.eye_array(4, 3),
                b=rng.standard_normal(4) if i else None,
                C=rng.standard_normal((2, d)) if i == 3 else None,
                c=rng.standard_normal(2) if i == 3 else None,
                D=sp.csr_array((0, 3)) if i == 2 else None,
            )
        )
    return ccmac.Problem(agents)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    problem().save(tmp_path / "p")
    return tmp_path / "p"


def assert_equal_blocks(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if sp.issparse(a):
        assert a.shape == b.shape
        assert (a != b).nnz == 0
    elif a is not None:
        np.testing.assert_array_equal(a, b)


def test_round_trip_is_exact(saved: Path) -> None:
    original = problem()
    loaded = ccmac.Problem.load(saved)
    for name in ("n", "q", "m", "d", "p", "r"):
        assert getattr(loaded, name) == getattr(original, name)
    for i, agent in original.agents.items():
        for name in "ABCDbce":
            assert_equal_blocks(getattr(agent, name), getattr(loaded.agents[i], name))
    x = np.ones(2)
    z = np.ones(3)
    assert loaded.agents[0].objective.value(x, z) == original.agents[0].objective.value(x, z)


@pytest.mark.parametrize("case", CASES, ids=[f"{kind}-{k}" for kind, k in CASES])
def test_every_objective_round_trips(case: tuple[str, int], tmp_path: Path) -> None:
    objective = build(case)
    blocks = {"A": np.zeros((1, D)), "B": np.zeros((1, Q))}
    ccmac.Problem([ccmac.Agent(objective, **blocks)]).save(tmp_path / "p")
    copy = ccmac.Problem.load(tmp_path / "p").agents[0].objective
    assert type(copy) is type(objective)
    assert copy.capabilities == objective.capabilities
    assert copy.curvature(D, Q) == objective.curvature(D, Q)
    for v in np.random.default_rng(0).uniform(-0.2, 0.9, (5, N)):
        assert copy.value(v[:D], v[D:]) == objective.value(v[:D], v[D:])


def test_a_process_opens_only_its_own_agents(saved: Path) -> None:
    for i in (0, 1, 2):
        (saved / f"agent-{i:04d}.npz").unlink()
    part = load_problem(saved, range(3, 5))
    assert list(part.agents) == [3, 4]
    assert (part.n, part.q, part.m) == (5, 3, 4)
    with pytest.raises(InputError, match=r"^agent 2, file agent-0002\.npz: the file is missing"):
        load_problem(saved, range(2, 5))
    with pytest.raises(InputError, match=r"agent 5 was asked for .* 0\.\.4"):
        load_problem(saved, range(4, 6))


def test_an_existing_directory_is_replaced_only_on_request(saved: Path) -> None:
    with pytest.raises(InputError, match="not empty"):
        problem(2).save(saved)
    assert load_problem(saved).n == 5
    problem(2).save(saved, replace=True)
    assert load_problem(saved).n == 2
    assert sorted(f.name for f in saved.iterdir()) == [
        "agent-0000.npz",
        "agent-0001.npz",
        "problem.yaml",
    ]


# -- what cannot be saved -----------------------------------------------------------------------
def test_code_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    custom = Custom(lambda x, z: 0.0, lambda x, z: (x, z), 1.0, 1.0)
    quiet = ccmac.Agent(SquaredDistance(1.0), B=np.ones((1, 2)))
    cases = {
        "agent 1, objective: Custom is Python code": ccmac.Agent(custom),
        "agent 1, block A: is an operator": ccmac.Agent(
            SquaredDistance(1.0), A=aslinearoperator(np.ones((1, 2)))
        ),
    }
    for message, agent in cases.items():
        with pytest.raises(InputError, match=f"^{message}.*; (use|give)"):
            ccmac.Problem([quiet, agent]).save(tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def test_functions_that_have_names_are_saved_by_them(tmp_path: Path) -> None:
    value = named("tests: value")(lambda x, z: float(x @ x))
    slope = named("tests: slope")(lambda x, z: (2 * x, 0 * z))
    agent = ccmac.Agent(Custom(value, slope, 2.0, 2.0, dim=1), A=np.ones((1, 1)), b=[3.0])
    agent.save(tmp_path / "agent")
    again = ccmac.Agent.load(tmp_path / "agent")
    assert again.objective.value(np.array([3.0]), np.zeros(0)) == 9.0
    assert ccmac.solve(ccmac.Problem([again])).x[0] == pytest.approx(3.0)
    del NAMED["tests: slope"]
    with pytest.raises(InputError, match="gradient: nothing here is named 'tests: slope'"):
        ccmac.Agent.load(tmp_path / "agent")


def test_a_part_of_a_problem_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 2 of 5 agents"):
        save_problem(problem().restricted(range(1, 3)), tmp_path / "p")


# -- damaged and hostile files ------------------------------------------------------------------
def refusal(directory: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_problem(directory)
    message = str(caught.value)
    assert "\n" not in message
    return message


def edit_manifest(directory: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = directory / "problem.yaml"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version=4), "version: Invalid enum value 4.*or update ccmac"),
        (lambda m: m.update(format="other"), "format: Invalid enum value 'other'"),
        (lambda m: m.pop("format"), "missing required field `format`"),
        (lambda m: m.pop("q"), "missing required field `q`"),
        (lambda m: m.update(q="3"), "Expected `int`, got `str`"),
        (lambda m: m.update(q=-1), "q: Expected `int` >= 0"),
        (lambda m: m.update(n=6), "says n = 6 but lists 5 agents"),
        (lambda m: m.update(surprise=1), "unknown field `surprise`"),
        (
            lambda m: m["agents"][1].update(file="../p/agent-0001.npz"),
            r"\.file: Expected `str` matching",
        ),
        (lambda m: m["agents"][1].update(file="/etc/passwd"), r"\.file: Expected `str` matching"),
        (lambda m: m["agents"][1].update(file=""), r"\.file: Expected `str` matching"),
        (lambda m: m["agents"][1].update(file=".."), r"\.file: Expected `str` matching"),
        (lambda m: m["agents"].clear(), "lists 0 agents"),
    ],
)
def test_bad_manifests(saved: Path, change: Any, message: str) -> None:
    edit_manifest(saved, change)
    with pytest.raises(InputError, match=f"problem.yaml: .*{message}"):
        load_problem(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["agents"][1].update(d=9), r"agent 1, file .* \(3, 0, 0\) .* \(9, 0, 0\)"),
        (lambda m: m.update(q=2), "agent 0, block B: fits z with 3 entries but z has 2"),
        (lambda m: m.update(m=7), "agent 0, block A: has 4 rows but .* 7"),
        (
            lambda m: m["agents"][1].update(sha256="0" * 64),
            "agent 1, .*does not match its checksum",
        ),
        (
            lambda m: m["agents"][1].update(file="nowhere.npz"),
            "agent 1, file nowhere.npz: .*missing",
        ),
    ],
)
def test_manifest_and_files_must_belong_together(saved: Path, change: Any, message: str) -> None:
    edit_manifest(saved, change)
    with pytest.raises(InputError, match=f"^{message}"):
        load_problem(saved)


def test_manifest_that_is_not_text_or_not_there(saved: Path) -> None:
    (saved / "problem.yaml").write_bytes(b"\xff\xfe\x00")
    assert "is not a UTF-8 text" in refusal(saved)
    (saved / "problem.yaml").unlink()
    assert "not found; give a directory written by Problem.save" in refusal(saved)


def replace_agent(directory: Path, write: Callable[[Path], None], agent: int = 1) -> None:
    """Put another file in an agent's place, with a checksum that matches."""
    victim = directory / f"agent-{agent:04d}.npz"
    write(victim)
    digest = hashlib.sha256(victim.read_bytes()).hexdigest()
    edit_manifest(directory, lambda m: m["agents"][agent].update(sha256=digest))


def edit_agent(directory: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    with np.load(directory / "agent-0001.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    change(arrays)
    replace_agent(directory, lambda path: np.savez(path, **arrays))


class Bomb:
    """Leaves a mark when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("import builtins; builtins.ccmac_was_unpickled = True",))


@pytest.mark.parametrize("place", ["A", "b", "objective", "unused"])
def test_pickles_are_never_opened(saved: Path, place: str) -> None:
    edit_agent(saved, lambda arrays: arrays.update({place: np.array([Bomb()], dtype=object)}))
    assert refusal(saved).startswith("agent 1, file agent-0001.npz: is not a file of plain arrays")
    replace_agent(saved, lambda path: path.write_bytes(pickle.dumps(Bomb())))
    assert refusal(saved).startswith("agent 1, file agent-0001.npz: is not a file of plain arrays")
    assert not hasattr(sys.modules["builtins"], "ccmac_was_unpickled")


SEPARABLE = {"kind": "Separable", "state": {"x": None, "z": None}}


def _text(**changes: Any) -> np.ndarray:
    return np.array(json.dumps(SEPARABLE | changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("A", np.full((4, 3), np.nan), "block A: has entries that are NaN"),
        ("A", np.ones((4, 3)) * 1j, "block A: has complex"),
        ("A", np.full((4, 3), "x"), "block A: is not numeric"),
        ("A", np.ones((3, 3)), "block A: has 3 rows but .* has 4"),
        ("b", np.full(4, np.inf), "block b: has entries"),
        ("B.indices", np.array([0, 1, 9]), ".*block B: is not a valid sparse matrix"),
        ("B.indices", np.array([0, 1, -1]), ".*block B: is not a valid sparse matrix"),
        ("B.indptr", np.array([0, 1, 2, 3, 10**9]), ".*block B: is not a valid sparse matrix"),
        ("B.indptr", np.array([0, 3, 1, 3, 3]), ".*block B: is not a valid sparse matrix"),
        ("B.shape", np.array([4, 3, 1]), ".*block B: is not a valid sparse matrix"),
        ("B.shape", np.array([4, -3]), ".*block B: is not a valid sparse matrix"),
        ("B.data", np.array([np.nan, 1.0, 1.0]), "block B: has entries that are NaN"),
        ("objective", np.array([1.0]), ".*objective: is not valid JSON"),
        ("objective", np.array("{"), ".*objective: is not valid JSON"),
        ("objective", np.array("[" * 100_000), ".*objective: is (nested too deeply|not valid)"),
        ("objective", np.array("[]"), ".*objective: Expected `object`, got `array`"),
        ("objective", _text(kind="os.system"), ".*objective: unknown objective 'os.system'"),
        ("objective", _text(kind="Custom"), ".*objective: the state of Custom has wrong entries"),
        ("objective", _text(kind=["Box"]), r".*objective: kind: Expected `str`, got `array`"),
        ("objective", _text(state=[1]), ".*objective: state: Expected `object`, got `array`"),
        ("objective", _text(state={"w": 1}), ".*objective: the state of Separable has wrong"),
        ("objective", _text(state={"x": 1}), ".*objective: Separable, x: int is not a function"),
        ("objective", _text(state={"x": [1]}), ".*objective: has an unknown entry"),
        ("objective", _text(state={"x": {"odd": 1}}), ".*objective: has an unknown entry"),
        ("objective", _text(state={"x": {"array": "none"}}), ".*block none: is missing"),
        ("objective", _text(state={"x": {"csr": "none"}}), ".*block none: lacks none.data"),
        (
            "objective",
            np.array(json.dumps({"kind": "SquaredDistance", "state": {"weight": -1}})),
            ".*objective: SquaredDistance, weight: is -1.0",
        ),
        (
            "objective",
            np.array(json.dumps({"kind": "Sum", "state": {}})),
            ".*objective: the state of Sum has wrong entries",
        ),
    ],
)
def test_bad_content_with_a_good_checksum(
    saved: Path, name: str, value: np.ndarray, message: str
) -> None:
    edit_agent(saved, lambda arrays: arrays.update({name: value}))
    with pytest.raises(InputError, match=f"^agent 1, {message}") as caught:
        load_problem(saved)
    assert "\n" not in str(caught.value)


def test_a_vertical_problem_keeps_its_partition(tmp_path: Path) -> None:
    """A reference in the order of the columns means the same before and after."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 9))
    y = rng.standard_normal(30)
    problem = ccmac.vfl.problem(X, y, 3, partition_seed=4)
    problem.save(tmp_path / "p")
    loaded = ccmac.Problem.load(tmp_path / "p")
    exact = np.linalg.solve(X.T @ X / 30 + 1e-2 * np.eye(9), X.T @ y / 30)
    for one in (problem, loaded):
        result = ccmac.solve(one, "ring", "cross-cg", tol=1e-12, reference=exact)
        assert result.status == "optimal"
        assert np.linalg.norm(one.weights(result) - exact) <= 1e-5  # type: ignore[attr-defined]
    part = ccmac.Problem.load(tmp_path / "p", agents=range(1))
    assert part.reference_blocks(exact) is not None
    text = (tmp_path / "p" / "problem.yaml").read_text()
    (tmp_path / "p" / "problem.yaml").write_text(text.replace("  - - ", "  - - 77\n    - ", 1))
    with pytest.raises(InputError, match="partition"):
        ccmac.Problem.load(tmp_path / "p")
