"""What is fuzzed: each target changes sound files in ``place`` and gives a command to run."""

# ruff: noqa: SIM905 (words in a row are easier to read)
from __future__ import annotations

import bz2
import contextlib
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import scipy.sparse as sp
import yaml

from ccmac import vfl
from ccmac.cli.main import main
from ccmac.methods.registry import REGISTRY, available_methods
from ccmac.paper.instances import dispatch
from ccmac.problem import Agent, Problem
from fuzz.changes import (
    archive_changed,
    bytes_changed,
    json_changed,
    numbers_changed,
    packed,
    yaml_changed,
)
from objectives.examples import EXAMPLES
from paper.experiments.toy import TEXT, fabricate

Words = list[str]
METHODS = ("auto", "cross-apapc", "cross-cg", "cross-direct", "cross-lbfgs", "joint-apapc", "papc")
LIMITED = ["--max-iterations", "30", "--max-seconds", "4"]
NETWORKS = {
    "edges.txt": "# a ring\n" + "".join(f"{k} {(k + 1) % 6}\n" for k in range(6)),
    "weighted.txt": "".join(f"{k}, {(k + 1) % 6}, {1 + k / 4}\n" for k in range(6)),
    "named.json": '{"edges": ' + str([[k, (k + 1) % 6, 1.5] for k in range(6)]) + "}",
    "weights.json": '{"weights": ' + str((6 * np.eye(6) - 1).tolist()) + "}",
}
SVMLIGHT = "".join(
    f"{(-1) ** k} " + " ".join(f"{j}:{(k * j) % 7 / 3:g}" for j in range(1 + k % 2, 8, 2)) + "\n"
    for k in range(12)
)
OWNER = {
    "public.toml": 'agents = 4\nq = 2\nm = 3\nnetwork = "ring"\nmethod = "auto"\ntol = 1e-6\n'
    'seed = 0\nnames = ["a", "b", "c", "d"]\n',
    "me.toml": 'public = "public.toml"\nagent = 1\nfolder = "agent"\ncertificate = "c.pem"\n'
    'key = "k.pem"\nauthority = "a.pem"\nout = "out"\nlisten = "localhost:7001"\npatience = 5.0\n'
    '[neighbors]\n0 = "localhost:7000"\n',
}
PARTY = {
    "me.toml": 'party = "b"\nparties = ["a", "b"]\ntable = "b.csv"\nkey = "id"\nout = "."\n'
    'label = "y"\ncolumns = ["u", "v"]\nnew = "b.csv"\n[model]\nregularization = 0.1\n',
    "b.csv": "id,u,v,y\n" + "".join(f"k{i},{i / 7:.3f},{i % 3},{i % 2}\n" for i in range(9)),
    "model.json": '{"format": "ccmac-vfl-party", "version": 1, "party": "b", '
    '"columns": ["u", "v"], "coef": [[1.0], [2.0]], "offset": [0.5], "classes": []}',
}
TOML = (
    *'-1 0 1 1.5 nan inf true "" "x" [] {} 1e400 2024-13-45 1979-05-27 [[1]] ":1"'.split(),
    *'"localhost:99999" "ring:3" "grid:2x2" "../x" 1_000_000_000 ["a","a"] "\\u0000"'.split(),
    *("", "9" * 30, "9" * 5000, "[" * 500, "{a = 1, a = 2}", '"' + "x" * 5000 + '"'),
)
NUMBERS = (
    *"0 -1 1 nan inf -inf 1e400 1e-400 0x10 1_0 1,5 true none ² 1e-320 -0.0 3.7".split(),
    *("", " ", "9" * 5000, "9" * 30, "18446744073709551616"),
)
TEXTS = (
    *"x ü a=b = == --json - %s {} ../.. /dev/null/x auto ring:3 grid:0x0 grid:2x3".split(),
    *"grid:9999999999x9 erdos_renyi:nan:0 erdos_renyi:2:0 random_regular:9:0".split(),
    *("", " ", "x" * 5000, "\n", "x" * 300 + "/y", "\udcff"),
)
ODD = (
    *b"0:1 -1:1 1:nan 1:inf 1e1:1 1:1:1 :1 1: 99999999999:1 1:1e400 # qid:1 nan 3:1 2:1".split(),
    b"\xff:1",
)
SOLVE = (
    *"--network --method --tol --realization --set --costs --max-iterations".split(),
    *"--max-seconds --warm-start --checkpoint --every --runtime --averaging --seed --out".split(),
)
OPTIONS = {
    "solve": SOLVE,
    "plan": (*SOLVE[:7], "--averaging", "--rows"),
    "geometry": ("--network", "--json"),
    "complexity": ("--network", "--tol", "--radius", "--energy-radius", "--method", "--set"),
}


class Templates:
    """Sound folders below ``root``: problems, outputs, checkpoints, records; copied to change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        dispatch(hours=2).problem.save(root / "dispatch")
        rng = np.random.default_rng(0)
        table = sp.csr_array(np.where(rng.random((12, 8)) < 0.6, 1.5, 0.0))
        vfl.problem(table, rng.standard_normal(12), 6).save(root / "vertical")
        self.solved("cross-apapc", "--checkpoint", root / "checkpoint", "--max-iterations", 8)
        self.solved("auto", "--out", root / "out")
        fabricate(
            root / "records",
            lambda chi, kappa, data: (20 * chi, 40 * chi * kappa**0.5),
            chis=(1.5, 2.0),
            kappas={"a": 4.0, "b": 9.0},
        )

    def solved(self, method: str, *more: object) -> None:
        """Run a solve without a word."""
        words = ("solve", self.root / "dispatch", "--network", "ring", "--method", method, *more)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main([str(word) for word in words])

    def copy(self, name: str, place: Path) -> Path:
        """A copy of a folder."""
        shutil.copytree(self.root / name, place / name)
        return place / name

    def problem(self, rng: Random, place: Path) -> Path:
        """A copy of a problem, or one of three agents with objectives of all kinds."""
        name = rng.choice(("dispatch", "vertical", "objectives", "objectives"))
        if name != "objectives":
            return self.copy(name, place)
        numbers = np.random.default_rng(rng.randrange(2**32))
        agents = []
        for _ in range(3):
            f = rng.choice(EXAMPLES[rng.choice(sorted(EXAMPLES))])()
            dense = numbers.standard_normal((2, 3))
            A = sp.csr_array(dense) if rng.random() < 0.5 else dense
            agents.append(Agent(f, A=A, B=numbers.standard_normal((2, 4)), b=[0.1, 0.2]))
        Problem(agents).save(place / name)
        return place / name


def solving(rng: Random, place: Path, folder: Path, network: str = "ring") -> Words:
    """A command that reads a problem, most often a short solve with an output folder."""
    base = [str(folder), "--network", network]
    kind = rng.random()
    if kind < 0.1:
        return ["geometry", *base]
    if kind < 0.2:
        return ["plan", *base, "--method", rng.choice(METHODS)]
    out = ["--out", str(place / "result")] if rng.random() < 0.7 else []
    return ["solve", *base, *LIMITED, "--method", rng.choice(METHODS), *out]


def problem(rng: Random, place: Path, made: Templates) -> Words:
    """``problem.yaml``, or a file of the folder gone."""
    folder = made.copy(rng.choice(("dispatch", "vertical")), place)
    path = folder / "problem.yaml"
    if rng.random() < 0.05:
        rng.choice(sorted(folder.iterdir())).unlink()
    else:
        path.write_bytes(yaml_changed(rng, path.read_text()))
    return solving(rng, place, folder)


def checked(folder: Path) -> Path:
    """The problem with the checksums that its files have."""
    listing = yaml.safe_load((folder / "problem.yaml").read_text())
    for entry in listing["agents"]:
        entry["sha256"] = hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest()
    (folder / "problem.yaml").write_text(yaml.safe_dump(listing))
    return folder


def agent(rng: Random, place: Path, made: Templates) -> Words:
    """The arrays of an agent, with the checksum put right."""
    folder = made.problem(rng, place)
    path = rng.choice(sorted(folder.glob("agent*.npz")))
    with np.load(path) as arrays:
        content = archive_changed(rng, dict(arrays))
    path.write_bytes(content)
    return solving(rng, place, checked(folder))


def numbers(rng: Random, place: Path, made: Templates) -> Words:
    """Sound arrays with numbers that are large, tiny, zero or of the other sign."""
    folder = made.problem(rng, place)
    seed = rng.random()
    for path in sorted(folder.glob("agent*.npz")):
        with np.load(path) as stored:
            path.write_bytes(packed(numbers_changed(Random(seed), dict(stored))))
    return solving(rng, place, checked(folder))


def network(rng: Random, place: Path, made: Templates) -> Words:
    """A file of edges or weights."""
    name = rng.choice(sorted(NETWORKS))
    path = place / name
    text = NETWORKS[name]
    if name.endswith(".json"):
        path.write_bytes(json_changed(rng, text))
    elif rng.random() < 0.6:
        words = text.split(" ")
        words[rng.randrange(len(words))] = rng.choice(NUMBERS)
        path.write_text(" ".join(words))
    else:
        path.write_bytes(bytes_changed(rng, text.encode()))
    return solving(rng, place, made.root / "dispatch", str(path))


def suite(rng: Random, place: Path, made: Templates) -> Words:
    """A suite file; it is read and expanded, none of its runs is executed."""
    path = place / "suite.yaml"
    path.write_bytes(yaml_changed(rng, TEXT.replace("DATA", "mushrooms-like")))
    more = rng.choice(([], ["--profile", "paper"], ["--max-runs", "5"]))
    return ["suite", "run", str(path), "--out", str(place / "runs"), "--only", "no such run", *more]


def svmlight(rng: Random, place: Path, made: Templates) -> Words:
    """Text of a table, plain or compressed."""
    content = SVMLIGHT.encode()
    words = content.split(b" ")
    words[rng.randrange(len(words))] = rng.choice(ODD)
    content = b" ".join(words) if rng.random() < 0.6 else bytes_changed(rng, content)
    suffix = rng.choice(("", ".bz2"))
    content = bz2.compress(content) if suffix else content
    path = place / f"table{suffix}"
    path.write_bytes(bytes_changed(rng, content) if rng.random() < 0.3 else content)
    return ["read-svmlight", str(path)]


def checkpoint(rng: Random, place: Path, made: Templates) -> Words:
    """What a stored run says, or its state."""
    folder = made.copy("checkpoint", place)
    [path] = folder.glob("state-*.npz")
    with np.load(path) as stored:
        arrays = dict(stored)
    if rng.random() < 0.5:
        text = json_changed(rng, arrays["meta"].tobytes().decode())
        path.write_bytes(packed(arrays | {"meta": np.frombuffer(text, dtype=np.uint8)}))
    else:
        path.write_bytes(archive_changed(rng, arrays))
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--method", "cross-apapc"]
    return [*words, "--checkpoint", str(folder), *LIMITED]


def record(rng: Random, place: Path, made: Templates) -> Words:
    """What a suite left behind."""
    folder = made.copy("records", place)
    path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    path = folder / "suite.json" if rng.random() < 0.25 else path
    change = json_changed if path.suffix == ".json" else bytes_changed
    content = path.read_text() if path.suffix == ".json" else path.read_bytes()
    path.write_bytes(change(rng, content))
    kind = rng.choice(("status", "verify", "table", "report"))
    if kind == "report":
        return ["report", str(folder), "-o", str(place / "report.html")]
    return ["suite", kind, str(folder)]


def warm(rng: Random, place: Path, made: Templates) -> Words:
    """The output of an earlier solve, to start from."""
    folder = made.copy("out", place)
    summary = folder / "summary.json"
    if rng.random() < 0.8:
        with np.load(folder / "solution.npz") as arrays:
            content = archive_changed(rng, dict(arrays))
        (folder / "solution.npz").write_bytes(content)
        said = json.loads(summary.read_text())
        said["parts"]["solution.npz"] = hashlib.sha256(content).hexdigest()
        summary.write_text(json.dumps(said))
    else:
        summary.write_bytes(json_changed(rng, summary.read_text()))
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--warm-start", str(folder)]
    return [*words, "--method", rng.choice(METHODS), *LIMITED]


def _settings(rng: Random, place: Path, texts: dict[str, str]) -> None:
    """Settings in TOML, tables and models, one of which is changed."""
    name = rng.choice(sorted(texts))
    if rng.random() < 0.3:
        content = bytes_changed(rng, texts[name].encode())
    elif name.endswith(".json"):
        content = json_changed(rng, texts[name])
    elif name.endswith(".csv"):
        cells = texts[name].split(",")
        cells[rng.randrange(len(cells))] = rng.choice((*NUMBERS, *TEXTS))
        content = ",".join(cells).encode("utf-8", "replace")
    else:
        lines = texts[name].splitlines()
        at = rng.randrange(len(lines))
        key = lines[at].partition(" = ")[0]
        lines[at] = rng.choice((f"{key} = {rng.choice(TOML)}", "", f"x{key} = 1", lines[at - 1]))
        content = "\n".join(lines).encode()
    for file, text in texts.items():
        (place / file).write_bytes(content if file == name else text.encode())


def owner(rng: Random, place: Path, made: Templates) -> Words:
    """The two files of an owner; they are read and compared, nobody is dialled."""
    _settings(rng, place, OWNER)
    return ["read-owner", str(place / "me.toml")]


def party(rng: Random, place: Path, made: Templates) -> Words:
    """What a party of a vertical model reads: its file, its table, its model."""
    _settings(rng, place, PARTY)
    return ["read-party", str(place / "me.toml")]


def options(rng: Random, place: Path, made: Templates) -> Words:
    """One command with odd options; short where it would be accepted."""
    name = rng.choice(("solve", "solve", "solve", "plan", "geometry", "complexity", "suite"))
    if name == "suite":
        return [name, rng.choice(("list", "status", "verify", "table", "x")), *rng.sample(TEXTS, 1)]
    words = [name, str(made.root / "dispatch") if rng.random() < 0.95 else rng.choice(TEXTS)]
    if rng.random() < 0.4 and name != "geometry":
        method = rng.choice(sorted(REGISTRY))
        known = [option["name"] for option in available_methods()[method]["options"]] or ["inner"]
        setting = f"{rng.choice(known)}={rng.choice((*NUMBERS, *TEXTS))}"
        words += ["--method", method, "--set", setting]
    for option in rng.sample(OPTIONS[name], rng.choice((1, 1, 2))):
        odd = rng.choice(NUMBERS if rng.random() < 0.6 else TEXTS)
        if option in ("--out", "--checkpoint", "--warm-start"):
            (place / "file").write_text("x")
            odd = rng.choice((str(place / "file" / "x"), str(place / "file"), "/proc/new", "", odd))
        words += [option, odd]
    more = LIMITED if name == "solve" else []
    return [*words, *(w for k, w in enumerate(more) if more[k - k % 2] not in words)]


TARGETS: dict[str, Callable[[Random, Path, Templates], Words]] = {
    target.__name__: target
    for target in (
        problem,
        agent,
        numbers,
        network,
        suite,
        svmlight,
        checkpoint,
        record,
        warm,
        owner,
        party,
        options,
    )
}
