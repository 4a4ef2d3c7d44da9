"""What fuzzing has found, made again: each of these was a traceback or a wait without end."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import socket
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from cryptography.hazmat.primitives import serialization
from rich.console import Console

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError, OutOfTime
from ccmac.linalg.chebyshev import smallest_degree
from ccmac.paper.data.loading import read_svmlight
from ccmac.paper.experiments import task
from ccmac.paper.experiments.suite import load as load_suite
from ccmac.paper.instances import dispatch
from ccmac.runtime.credentials import Credentials, listening
from ccmac.storage.keys import make_keys
from fuzz.archives import headed, member, packed
from fuzz.judge import read_party
from fuzz.owners import PARTY
from fuzz.targets import checked
from fuzz.templates import Templates
from paper.experiments.toy import TEXT
from rewriting import Stored

Change = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory.mktemp("sound"))


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line of a command that is refused."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert len(told.err) < 500
    return told.err


def with_agent(folder: Path, change: Change) -> Path:
    """The saved problem with the arrays of agent 0 changed and its checksum put right."""
    path = folder / "agent-0000.npz"
    with np.load(path) as stored:
        arrays = change(dict(stored))
    parts = [(f"{k}.npy", v if isinstance(v, bytes) else member(v)) for k, v in arrays.items()]
    path.write_bytes(packed(parts))
    return checked(folder)


@pytest.mark.parametrize("place", ["problem.yaml", "agent-0003.npz"])
@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "loop", "kernel"])
def test_no_ordinary_file(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, kind: str
) -> None:
    path = made.copy("dispatch", tmp_path) / place
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("endless", "kernel"):
        path.symlink_to("/dev/zero" if kind == "endless" else "/proc/kmsg")
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.mkdir()
    refused(capsys, "solve", path.parent)


@pytest.mark.parametrize("name", ["checkpoint.json", "state", "trace"])
def test_a_pipe_in_a_checkpoint(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = made.copy("checkpoint", tmp_path)
    for path in folder.glob(f"{name}*"):
        path.unlink()
        os.mkfifo(path)
    words = ("--network", "ring", "--method", "cross-apapc", "--checkpoint", folder)
    refused(capsys, "solve", made.root / "dispatch", *words)


def longer(arrays: dict[str, Any]) -> dict[str, Any]:
    """A sparse block with more entries than indices."""
    return arrays | {"A.data": np.append(arrays["A.data"], 1.0)}


@pytest.mark.parametrize(
    ("folder", "change"),
    [
        ("vertical", longer),
        ("vertical", lambda a: a | {"A.shape": np.array([12, 2**64 - 1], dtype=np.uint64)}),
        ("dispatch", lambda a: a | {"b": headed("(" * 3000, b"")}),
        ("dispatch", lambda a: a | {"b": headed("{'a': " * 500, b"")}),
        ("dispatch", lambda a: a | {"b": 1e300 * a["b"]}),
        ("dispatch", lambda a: a | {"A": 1e155 * a["A"]}),
    ],
)
def test_arrays(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, change: Change
) -> None:
    place = with_agent(made.copy(folder, tmp_path), change)
    assert "agent 0" in refused(capsys, "solve", place, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def tiny() -> ccmac.Problem:
    """The coupling through x is there, and its square is not."""
    f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    return ccmac.Problem([ccmac.Agent(f, A=[[1e-170]], B=[[1.0]], b=[1.0]) for _ in range(3)])


def test_scales_beyond_double_precision_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ccmac.methods.run.Run.solve", broken)
    with pytest.raises(InputError, match=r"agent 0, block A: has an entry of size 1e-170"):
        ccmac.solve(tiny(), "ring")
    with pytest.raises(ZeroDivisionError):  # a defect of the program is not blamed on the data
        ccmac.solve(dispatch(hours=2).problem, "ring")


def test_a_scale_of_an_objective_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ccmac.objectives.Ridge(regularization=1e-40)
    agent = ccmac.Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0])

    def broken(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr("ccmac.methods.run.Run.solve", broken)
    with pytest.raises(InputError, match=r"agent 0, objective: has an entry of size 1e-40"):
        ccmac.solve(ccmac.Problem([agent, agent]), "path")


@pytest.mark.parametrize("option", ["--out", "--checkpoint", "--warm-start"])
def test_names_that_no_disk_takes(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    refused(capsys, "solve", made.root / "dispatch", option, tmp_path / ("n" * 300))


def test_a_report_that_cannot_be_written(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "report", made.root / "records", "-o", tmp_path / ("n" * 300) / "page.html")


@pytest.mark.parametrize("family", [["ring"], {}, None, 3])
def test_a_family_that_is_no_text(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], family: Any
) -> None:
    folder = made.copy("records", tmp_path)
    content = json.loads((folder / "suite.json").read_text())
    next(iter(content["runs"].values()))["network"]["family"] = family
    (folder / "suite.json").write_text(json.dumps(content))
    refused(capsys, "suite", "status", folder)


@pytest.mark.parametrize("what", ["trace", "generation", "iteration"])
def test_an_index_that_says_what_cannot_be(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    folder = made.copy("checkpoint", tmp_path)
    stored = Stored(folder)
    stored.older.unlink()
    if what == "trace":
        stored.head["manifest"]["trace"]["file"] = ["trace"]
    else:
        stored.head[what] = 2**63  # owners tell it each other as a float
    stored.write()
    before = sorted(folder.iterdir())
    words = ("--network", "ring", "--method", "cross-apapc", "--checkpoint", folder)
    refused(capsys, "solve", made.root / "dispatch", *words)
    assert sorted(folder.iterdir()) == before


def test_degrees_where_the_lower_end_is_lost_beside_the_upper() -> None:
    degree = math.acosh(1e12) / 2e-7  # acosh(1 + 2t) = 2 sqrt(t)
    assert smallest_degree(1e-14, 1.0, 1e-12) == pytest.approx(degree, rel=1e-6)
    assert smallest_degree(0.0, 1.0, 1e-12) > smallest_degree(1e-16, 1.0, 1e-12)


def test_prices_are_not_all_zero() -> None:
    with pytest.raises(InputError, match="all prices are zero"):
        ccmac.Costs(gradient=0.0, round=0.0)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("b.csv", "k4,0.571", "k4," + "9" * 400),
        ("b.csv", "id,u,v,y", "id,u,v"),
        ("model.json", '"u"', "[[]]"),
        ("model.json", '"classes": []', '"classes": ["x"]'),
        ("model.json", "[0.5]", "[null]"),
        ("me.toml", '["u", "v"]', '["id", "u"]'),
        ("me.toml", "0.1", "9" * 5000),
        ("me.toml", 'out = "."', 'out = "\\u0000"'),
        ("me.toml", 'key = "id"', f'key = "{"0" * 3000}"'),
        ("me.toml", 'label = "y"', f'label = "{"0" * 3000}"'),
    ],
)
def test_files_of_a_party(tmp_path: Path, name: str, old: str, new: str) -> None:
    for file, text in PARTY.items():
        (tmp_path / file).write_text(text.replace(old, new) if file == name else text)
    with pytest.raises(InputError) as caught:
        read_party(tmp_path / "me.toml")
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["a", "b"]', '["b", "b"]'),
        ("[model]", '[link]\ncertificate = ""\nkey = ""\nauthority = ""\nwait = nan\n[model]'),
    ],
)
def test_who_takes_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    (tmp_path / "me.toml").write_text(PARTY["me.toml"].replace(old, new))
    refused(capsys, "vfl", "party", tmp_path / "me.toml")


@pytest.mark.parametrize("name", ["../x", "", "x" * 65, "é", "\0", "authority"])
def test_names_of_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    refused(capsys, "keys", tmp_path / "keys", "--name", name)
    assert not any(tmp_path.iterdir())


def test_numbers_beyond_all_measure(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "keys", tmp_path / "keys", "--agents", 1, "--days", 10**9)
    refused(capsys, "power", "case9", "--hours", 10**9)
    assert main(["solve", str(made.root / "dispatch"), "--tol", "1e300"]) == 0
    with pytest.raises(InputError, match=r"z_lower: has entries beyond 1e\+50"):
        ccmac.Problem(tiny().agents, z_lower=1e300)


@pytest.mark.parametrize("name", ["b.csv", "b.csv.zip", "b.csv.gz", "b.parquet"])
@pytest.mark.parametrize("kind", ["text", "pipe"])
def test_a_table_that_pandas_would_unpack_or_wait_for(tmp_path: Path, name: str, kind: str) -> None:
    for file, text in PARTY.items():
        (tmp_path / file).write_text(text.replace("b.csv", name))
    (tmp_path / "b.csv").unlink()
    (tmp_path / name).write_bytes(b"\x1f\x8b") if kind == "text" else os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=r"cannot be read|needs pyarrow"):
        read_party(tmp_path / "me.toml")


@pytest.mark.parametrize("name", ["\0", "half \ud800"])
def test_names_that_no_file_has(name: str) -> None:
    with pytest.raises(InputError, match="no file has such a name"):
        ccmac.Agent.load(name)


def test_a_picture_that_has_no_place_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "power", "case30", "--out", tmp_path)


@pytest.mark.parametrize("name", ["\0", "pipe", "n" * 300, ""])
def test_certificates_that_are_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot be used") as caught:
        Credentials(name or "pipe", name, name).context(server=True)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("host", ["\0", "é" * 80, "a..b", "x" * 300, "\udcff"])
def test_hosts_that_are_no_names(host: str) -> None:
    with pytest.raises(InputError, match="cannot listen there") as caught:
        listening((host, 7001))
    assert len(str(caught.value)) < 400


def test_a_number_of_5000_digits_in_an_objective(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = np.array('{"kind": "Zero", "state": {"size": ' + "9" * 5000 + "}}")
    place = with_agent(made.copy("dispatch", tmp_path), lambda a: a | {"objective": text})
    assert "not valid JSON" in refused(capsys, "solve", place)


@pytest.mark.parametrize("method", ["cross-apapc", "coupled-yarmoshik"])
def test_a_step_that_goes_on_is_given_up(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """A step may take hours where the spectrum is wide; the limit on time ends it."""
    problem = dispatch(hours=2).problem
    whole = ccmac.solve(problem, "ring", method, max_iterations=5)

    def slow(count: int, state: object) -> None:
        if count == 5:  # as if the sixth were long overdue
            monkeypatch.setattr("ccmac.runtime.base.OVERDUE", -1e6)

    ended = ccmac.solve(problem, "ring", method, max_seconds=1e5, callback=slow)
    assert ended.iterations == 5
    assert any("within iteration 6" in text for text in ended.warnings)
    assert ended.ledger.as_dict()["solve"] == whole.ledger.as_dict()["solve"]
    assert all(np.array_equal(a, b) for a, b in zip(ended.x, whole.x, strict=True))


@pytest.mark.parametrize(
    "words",
    [
        ("data", "path", "a", "QZ"),
        ("data", "QZ"),
        ("solve", "--QZ"),
        ("solve", "QZ"),
        ("suite", "status", "far/QZ"),
        ("agent", "QZ/me.toml"),
        ("solve", "x", "--set=QZ"),
    ],
)
@pytest.mark.parametrize("letters", ["Qz ", "Q\tz", "Qz/ "])
def test_long_words_with_blanks_are_not_repeated(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], letters: str
) -> None:
    long = letters * 100
    line = refused(capsys, *(word.replace("QZ", long) for word in words))
    assert line.count("Q") <= 160 // 3


def test_a_checkpoint_of_another_version_is_refused_before_anything_is_written(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The version stands twice in it: beside what the run depends on, and in it."""
    folder = made.copy("checkpoint", tmp_path)
    stored = Stored(folder)
    stored.older.unlink()
    stored.run["manifest"]["version"] = "0.0.1"
    stored.write()
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    words = ("--network", "ring", "--method", "cross-apapc", "--checkpoint", folder)
    assert "damaged" in refused(capsys, "solve", made.root / "dispatch", *words)
    after = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    assert before == after


def test_a_family_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert "six block" in refused(capsys, "optimality", "--family", "six blocks")


@pytest.mark.parametrize(
    "text",
    [
        "METHODS = 3",
        "DATASETS = [1]",
        "DATASETS = {1: print}",
        "raise SystemExit(0)",
        "raise BaseException",
        "from ccmac.methods import Method\nclass Mine(Method): pass\nMETHODS = [Mine]",
    ],
)
def test_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    words = ("--out", tmp_path / "out", "--plugin", tmp_path / "mine.py")
    assert "plugin" in refused(capsys, "suite", "run", "smoke", *words)


@pytest.mark.parametrize(
    "words",
    [
        (
            "solve",
            "SOUND",
            "--out",
            "a/b",
            "--checkpoint",
            "c/d",
            "--method",
            "cross-ipm",
            "--network",
            "star:3",
        ),
        (
            "solve",
            "SOUND",
            "--out",
            "a/b",
            "--checkpoint",
            "c/d",
            "--method",
            "cross-cg",
            "--set",
            "sketch=99999999",
            "--warm-start",
            "nowhere",
        ),
        ("solve", "SOUND", "--out", "a/" + "n" * 300),
        ("solve", "SOUND", "--checkpoint", "a/b/" + "n" * 300),
        ("suite", "run", "smoke", "--out", "a/b/" + "n" * 300),
        ("power", "case9", "--areas", "99", "--out", "a/b/grid.png"),
        ("demo", "--out", "a/" + "n" * 300),
        ("keys", "a/" + "n" * 300, "--agents", "1"),
    ],
)
def test_folders_of_a_refused_command_go_again(
    made: Templates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(capsys, *(str(made.root / "dispatch") if w == "SOUND" else w for w in words))
    assert not any(tmp_path.iterdir())


def test_a_checkpoint_that_comes_to_nothing_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The method is refused after the place was tried."""
    problem = ccmac.vfl.problem(np.eye(4), [1.0, -1.0, 1.0, -1.0], 2, loss="logistic")
    problem.save(tmp_path / "problem")
    words = ("--method", "cross-apapc", "--checkpoint", tmp_path / "a" / "b")
    assert "strongly convex" in refused(capsys, "solve", tmp_path / "problem", *words)
    assert not (tmp_path / "a").exists()


def test_an_endless_file_of_an_agent_is_not_read(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made.copy("dispatch", tmp_path) / "agent-0001.npz"
    os.truncate(path, 1 << 36)  # takes no room on the disk
    assert "plain arrays" in refused(capsys, "solve", path.parent)


def test_an_endless_solution_is_not_read(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = made.copy("out", tmp_path)
    os.truncate(out / "solution.npz", 1 << 36)
    refused(capsys, "solve", made.root / "dispatch", "--warm-start", out)


class Strange:
    """As a tensor with a gradient: it says why it is no array in its own words."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("call detach first")

    def __iter__(self) -> Any:
        raise RuntimeError("call detach first")

    def __len__(self) -> int:
        raise RuntimeError("call detach first")

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("call detach first")

    __hash__ = object.__hash__


class Nameless:
    """It cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def own_objective(**more: Any) -> ccmac.Problem:
    f = ccmac.objectives.Custom(
        lambda x, z: 0.0, lambda x, z: (0 * x, 0 * z), **({"smoothness": 1.0} | more)
    )
    return ccmac.Problem([ccmac.Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0])] * 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ccmac.Problem(tiny().agents, present=None),  # type: ignore[arg-type]
        lambda: ccmac.Problem(tiny().agents, present=["X"]),
        lambda: ccmac.Problem(tiny().agents, row_names=np.array(0.0)),  # type: ignore[arg-type]
        lambda: ccmac.Problem(np.array(0.0)),  # type: ignore[arg-type]
        lambda: ccmac.Problem(tiny().agents, z_lower=Strange()),
        lambda: ccmac.Problem([ccmac.Agent(ccmac.objectives.Ridge(), A=Strange())]),
        lambda: ccmac.prepare(dispatch(hours=2).problem, "ring").update(b=np.array(0.0)),
        lambda: ccmac.geometry(tiny(), dense_limit="many"),  # type: ignore[arg-type]
        lambda: tiny().rebalanced([10**400, 1, 1]),
        lambda: ccmac.Agent.load(None),  # type: ignore[arg-type]
        lambda: ccmac.vfl.problem(np.eye(4), np.ones(4), 2, shares=[10**400, 1]),
        lambda: ccmac.vfl.problem(Strange(), np.ones(4), 2),
        lambda: ccmac.vfl.VerticalRidge(parties=np.array(0.0)).fit(np.eye(4), np.ones(4)),
        lambda: ccmac.vfl.VerticalRidge(join=np.ones(2)).fit(np.eye(4), np.ones(4)),
        lambda: ccmac.vfl.VerticalRidge().fit(np.eye(4), np.ones(4), sample_weight=[[1, 2], [3]]),
        lambda: ccmac.vfl.VerticalHuber(method=np.ones(2)).fit(np.eye(4), np.ones(4)),
        lambda: ccmac.methods.CrossApapc(realization=np.ones(2)),  # type: ignore[arg-type]
        lambda: ccmac.power.dc_opf("case9", reserve=None),  # type: ignore[arg-type]
        lambda: ccmac.power.dc_opf("case9", storage=[1]),  # type: ignore[arg-type]
        lambda: ccmac.power.dc_opf("case9", storage={5: "x"}),  # type: ignore[dict-item]
        lambda: ccmac.power.dc_opf("case9", ramp=np.ones(2)),  # type: ignore[arg-type]
        lambda: ccmac.vfl.party(np.eye(4), np.ones(4), parties=2, loss=np.ones(2)),  # type: ignore[arg-type]
        lambda: ccmac.vfl.party(np.eye(4), np.ones(4), parties=2, intercept=np.ones(2)),  # type: ignore[arg-type]
        lambda: ccmac.Problem(Strange()),  # type: ignore[arg-type]
        lambda: ccmac.Problem(range(10**15)),  # type: ignore[arg-type]
        lambda: ccmac.Problem(tiny().agents, sense=Nameless()),  # type: ignore[arg-type]
        lambda: ccmac.plan(tiny(), "ring", tol=10**400),
        lambda: ccmac.prepare(tiny(), "ring").solve(tol=10**400),
        lambda: ccmac.Network.erdos_renyi(5, 0.5, Nameless()),  # type: ignore[arg-type]
        lambda: ccmac.Network.random_regular(5, 2, Nameless()),  # type: ignore[arg-type]
        lambda: ccmac.Network.from_weights(np.eye(3) - 1 / 3, name=np.ones(2)),  # type: ignore[arg-type]
        lambda: ccmac.Network.from_graph(networkx.path_graph(3), name=[]),  # type: ignore[arg-type]
        lambda: ccmac.Network.from_graph(networkx.path_graph(3), nodes=Strange()),  # type: ignore[arg-type]
        lambda: own_objective(smoothness=np.ones(2)),
        lambda: own_objective(smoothness=Strange()),
        lambda: own_objective(lipschitz=np.ones(0)),
        lambda: own_objective(dim="2"),
        lambda: own_objective(dim=2.5),
        lambda: ccmac.objectives.Limited(ccmac.objectives.Ridge(), [[1], [1, 2]], 1.0),
        lambda: ccmac.objectives.Limited(ccmac.objectives.Ridge(), 0.0, Strange()),
        lambda: ccmac.vfl.problem(sp.coo_array(np.ones(4)), np.ones(4), 2),
        lambda: ccmac.vfl.problem(np.eye(4), Strange(), 2),
        lambda: ccmac.vfl.problem(np.eye(4), np.ones(4), 2, loss=Nameless()),  # type: ignore[arg-type]
        lambda: ccmac.vfl.VerticalRidge().fit(np.eye(4), 3.0),
        lambda: ccmac.vfl.VerticalRidge().fit(np.eye(4), sp.csr_array(np.ones((4, 1)))),
        lambda: ccmac.vfl.VerticalRidge().fit(np.eye(4), Strange()),
        lambda: ccmac.vfl.cross_factor_weights(3, "2"),  # type: ignore[arg-type]
        lambda: ccmac.vfl.cross_factor_weights(3, 10**400),
        lambda: ccmac.vfl.cross_factor_weights(2.5, 2.0),  # type: ignore[arg-type]
        lambda: ccmac.vfl.cross_factor_weights(3, 2.0, seed="x"),  # type: ignore[arg-type]
        lambda: ccmac.vfl.party(np.eye(4), np.ones(4), parties=10**400),
        lambda: ccmac.methods.CrossApapc(realization=Nameless()),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_in_python(call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert len(str(caught.value)) < 300
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("agents", [True, "x", [0.0], [[1.0, 1.0]], [10**400], [-1]])
def test_agents_to_load(made: Templates, agents: Any) -> None:
    with pytest.raises(InputError) as caught:
        ccmac.Problem.load(made.root / "dispatch", agents=agents)
    assert len(str(caught.value)) < 300


def test_seeds_may_be_numbers_of_numpy() -> None:
    assert ccmac.Network.erdos_renyi(6, 0.9, np.int8(1)).n == 6


def test_words_of_a_damaged_data_set_are_short(tmp_path: Path) -> None:
    (tmp_path / "set.txt").write_bytes(b"\xff" * 200 + b" 1:1\n")
    with pytest.raises(InputError, match="not a number") as caught:
        read_svmlight(tmp_path / "set.txt")
    assert len(str(caught.value)) < 180 + len(str(tmp_path))
    os.truncate(tmp_path / "set.txt", 1 << 40)  # takes no room on the disk
    with pytest.raises(InputError, match="holds more than"):
        read_svmlight(tmp_path / "set.txt")


def test_zeros_are_no_archive(tmp_path: Path) -> None:
    (tmp_path / "set.xz").touch()
    os.truncate(tmp_path / "set.xz", 1 << 29)
    with pytest.raises(InputError, match="damaged"):
        read_svmlight(tmp_path / "set.xz")


# -- names and places ------------------------------------------------------------------------------
def test_a_folder_whose_name_is_no_text(made: Templates, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(made.root / "dispatch", folder)
    shutil.copytree(made.root / "records", folder / "records")
    shown = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(shown, "utf-8", errors="strict")) as terminal:
        assert main(["solve", str(folder), "--out", str(folder / "out")]) == 0
        assert main(["report", str(folder / "records"), "-o", str(folder / "page.html")]) == 0
        terminal.flush()
    assert shown.getvalue().count(b"caf\\udce9") == 2
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert (folder / "page.html").stat().st_size == len(page.encode())


@pytest.mark.parametrize("kind", ["foreign", "link", "file", "summary", "trace", "solution"])
def test_what_is_in_the_way_of_a_result(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = {"summary": "summary.json", "trace": "trace.csv", "solution": "solution.npz"}
    place = out / names.get(kind, ".ccmac-next")
    if kind == "link":
        place.symlink_to(tmp_path)
    elif kind == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert place.name in refused(capsys, "solve", made.root / "dispatch", "--out", out)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_killed_writer_left_is_not_in_the_way(made: Templates, tmp_path: Path) -> None:
    out = made.copy("out", tmp_path)
    (out / ".ccmac-next").mkdir()
    for file in list(out.glob("*.*")):
        if file.is_file():
            file.rename(out / ".ccmac-next" / file.name)
    assert main(["solve", str(made.root / "dispatch"), "--out", str(out)]) == 0
    names = sorted(file.name for file in out.iterdir())
    assert names == ["solution.npz", "summary.json", "trace.csv"]


@pytest.mark.parametrize("name", ["state-0.bin", "state-1.bin"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_where_a_checkpoint_is_written(
    made: Templates, tmp_path: Path, name: str, kind: str
) -> None:
    """The run goes on; a pipe would be waited for, and what a link leads to be written over."""
    (tmp_path / "mine").write_text("mine")
    folder = tmp_path / "state"
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(tmp_path / "mine")
    result = ccmac.solve(
        ccmac.Problem.load(made.root / "dispatch"),
        "ring",
        "cross-apapc",
        max_iterations=5,
        checkpoint={"path": folder, "every": 1},
    )
    assert result.iterations == 5
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "socket"])
def test_a_lock_that_is_no_file(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    lock = tmp_path / ".lock"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    elif kind == "link":
        lock.symlink_to("nowhere")
    else:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(os.path.relpath(lock))
    words = ("--out", tmp_path, "--only", "none")
    assert "no ordinary file" in refused(capsys, "suite", "run", made.root / "suite.yaml", *words)
    assert list(tmp_path.iterdir()) == [lock]


@pytest.mark.parametrize("name", ["runs", "record"])
def test_what_is_in_the_way_of_a_record(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    suite = load_suite(str(made.root / "suite.yaml"))
    place = tmp_path / "runs" if name == "runs" else tmp_path / "runs" / suite.runs[0].id
    place.parent.mkdir(exist_ok=True)
    place.symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    words = ("--out", tmp_path, "--resume")
    assert "in the way" in refused(capsys, "suite", "run", made.root / "suite.yaml", *words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_download_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(*_: object) -> None:
        raise InputError("no network")

    monkeypatch.setattr("ccmac.paper.data.loading._transfer", nowhere)
    monkeypatch.setattr("ccmac.paper.data.files.cache_directory", lambda: tmp_path / "a" / "b")
    monkeypatch.setenv("CCMAC_DATA", "")
    assert "no network" in refused(capsys, "data", "path", "a9a")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["~nobody-of-that-name", "n" * 300, "[/x]", "half \udcff"])
def test_a_data_directory_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.setenv("CCMAC_DATA", value)
    assert "not a directory" in refused(capsys, "data", "list")


def test_brackets_are_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "[red]" / "[" / "] :smile:"
    folder.mkdir(parents=True)
    (folder / "a9a").write_text("1 1:1\n")
    monkeypatch.setenv("CCMAC_DATA", str(folder))
    monkeypatch.setattr("ccmac.cli.options.Console", partial(Console, width=2000))
    assert main(["data", "list"]) == 0
    assert str(folder) in capsys.readouterr().out
    (tmp_path / "s.yaml").write_text(
        TEXT.replace("toy", "'[/red] :x:'").replace("DATA", "a1a-like")
    )
    words = ["--out", str(tmp_path / "out"), "--only", "none"]
    assert main(["suite", "run", str(tmp_path / "s.yaml"), *words]) == 0
    assert "[/red] :x: (practical)" in capsys.readouterr().err


@pytest.mark.parametrize("length", [300, 5000])
def test_long_paths_are_not_repeated_in_python(length: int) -> None:
    for call in (ccmac.Problem.load, ccmac.Agent.load, tiny().save):
        with pytest.raises((InputError, OSError)) as caught:
            call("n" * length)
        assert str(caught.value).count("n") < 150 or isinstance(caught.value, OSError)


@pytest.mark.parametrize("kind", ["endless", "encrypted"])
def test_keys_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    make_keys(tmp_path, ["a"], 2)
    key = tmp_path / "a.key"
    if kind == "endless":
        os.truncate(key, 1 << 36)
    else:
        secret = serialization.BestAvailableEncryption(b"secret")
        plain = serialization.load_pem_private_key(key.read_bytes(), None)
        pem = serialization.Encoding.PEM
        form = serialization.PrivateFormat.PKCS8
        key.write_bytes(plain.private_bytes(pem, form, secret))
    files = (tmp_path / "a.crt", key, tmp_path / "authority.crt")
    with pytest.raises(InputError, match=r"megabyte|encrypted"):
        Credentials(*map(str, files)).context(server=True)


# -- numbers ---------------------------------------------------------------------------------------
def test_spectra_whose_ends_are_too_far_apart() -> None:
    """A polynomial for them would have more coefficients than fit into the memory."""
    given = ccmac.Certificates(h=1e10, mu_HC=1e-12)
    with pytest.raises(InputError, match=r"more than 1e\+12 apart"):
        ccmac.solve(
            dispatch(hours=2).problem,
            "ring",
            ccmac.methods.CrossApapc(realization="certified", certificates=given),
        )


@pytest.mark.parametrize("value", [1e51, 1e300, True, math.inf, math.nan, 0.0, "1", 10**400])
def test_certificates_that_are_no_numbers(value: Any) -> None:
    with pytest.raises(InputError, match="must be a positive number"):
        ccmac.Certificates(cross_factor=value)


@pytest.mark.parametrize("slacks", ["x", None, 0.7, -1, 10**30, True])
def test_slacks_that_are_no_number(
    made: Templates, tmp_path: Path, capsys: pytest.CaptureFixture[str], slacks: Any
) -> None:
    inner = {"objective": {"kind": "Ridge", "state": {"regularization": 1.0}}}
    bounds = {name: {"list": [value] * 9} for name, value in (("lower", -1.0), ("upper", 1.0))}
    tree = {"kind": "Limited", "state": {"objective": inner, "slacks": slacks, "q": 1, **bounds}}
    text = np.array(json.dumps(tree))
    place = with_agent(made.copy("dispatch", tmp_path), lambda a: a | {"objective": text})
    assert "agent 0" in refused(capsys, "solve", place)


# -- checkpoints of code ---------------------------------------------------------------------------
def own(weight: float = 1.0, upper: float = 0.5, far: float = 0.0) -> ccmac.Problem:
    """Three agents with an objective of their own, under bounds that no probe meets."""

    def value(x: Any, z: Any) -> float:
        return weight * float(x @ x + z @ z) / 2 + far * float(np.maximum(x - 20, 0) @ x)

    def gradient(x: Any, z: Any) -> tuple[Any, Any]:
        return weight * x, weight * z

    f = ccmac.objectives.Custom(value, gradient, weight, weight)
    b = [[0.4], [0.1], [0.2]]
    return ccmac.Problem(
        [ccmac.Agent(f, A=[[1.0, 1.0]], B=[[1.0]], b=v, lower=0.0, upper=upper) for v in b]
    )


@pytest.mark.parametrize("other", [{"weight": 2.0}, {"upper": 0.6}, {"far": 1.0}])
def test_a_checkpoint_of_code_under_bounds(tmp_path: Path, other: dict[str, float]) -> None:
    how: dict[str, Any] = {"checkpoint": {"path": tmp_path, "every": 1}, "max_iterations": 3}
    ccmac.solve(own(), "ring", "cross-sliding", **how)
    assert (tmp_path / "checkpoint.json").exists()
    with pytest.raises(InputError, match="the objective of agents 0, 1, 2 differs"):
        ccmac.solve(own(**other), "ring", "cross-sliding", **how)
    ccmac.solve(own(), "ring", "cross-sliding", **how)


def test_the_reference_of_a_run_is_part_of_its_time() -> None:
    X = np.random.default_rng(0).standard_normal((40, 4))
    y = np.ones(40)
    over = task.Clock(0.0)
    for fit in (task.ridge, task.logistic):
        with pytest.raises(OutOfTime):
            fit(X, y, 0.1, 0.0, over)
    seconds = task.Clock(50.0).seconds()
    assert seconds is not None
    assert 0 < seconds <= 50
    assert task.Clock(None).seconds() is None


# -- texts without an end --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text", ["n: 1" + ":59" * 500_000 + ".5", "n: " + "1_" * 500_000 + "."], ids=["sixty", "lines"]
)
def test_numbers_of_many_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "problem.yaml").write_text(text)
    assert "not a number that can be read" in refused(capsys, "solve", tmp_path)


@pytest.mark.parametrize("command", ["agent", "solve"])
def test_keys_without_an_end_are_not_repeated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    header = "format: ccmac-problem\nversion: 1\n"
    (tmp_path / "problem.yaml").write_text(header + "Q " * 39 + "Q: 1\n")
    (tmp_path / "me.toml").write_text('"' + "Q " * 20_000 + '" = 1\n')
    line = refused(capsys, command, "me.toml" if command == "agent" else ".")
    assert line.count("Q") <= 40
    (tmp_path / "me.toml").write_text(2 * ('["' + "Q " * 500 + '"]\n'))
    assert refused(capsys, "agent", "me.toml").count("Q") <= 40


# -- what a command meets on the way ---------------------------------------------------------------
def test_what_overflows_on_the_way_is_not_told(
    made: Templates, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NumPy would say so before the line that counts."""

    def overflowing(*_: object) -> None:
        np.array([1e300]) * np.array([1e300])
        raise InputError("one line")

    monkeypatch.setattr("ccmac.cli.solve.Problem.load", overflowing)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert refused(capsys, "solve", made.root / "dispatch") == "error: one line\n"


@pytest.mark.parametrize("option", ["--plugin", "-o"])
def test_links_that_lead_to_themselves(
    made: Templates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    if option == "-o":  # a page takes the place of the link
        assert main(["report", str(made.root / "records"), "-o", "loop"]) == 0
        assert not (tmp_path / "loop").is_symlink()
    else:
        assert "no such file" in refused(
            capsys, "suite", "run", "smoke", "--out", "out", "--plugin", "loop"
        )


def test_a_step_that_sends_nothing_is_given_up() -> None:
    """The channels are multiplied out, and a cross factor of 1e12 asks for 1e12 of them."""
    given = ccmac.Certificates(cross_factor=1e12)
    method = ccmac.methods.CrossApapc(realization="certified", certificates=given)
    ended = ccmac.solve(dispatch(hours=2).problem, "ring", method, max_seconds=0.5)
    assert any("within iteration 1" in text for text in ended.warnings)
