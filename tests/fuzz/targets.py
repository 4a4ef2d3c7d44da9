"""What is fuzzed: each target changes sound files in ``place`` and gives a command to run."""

from __future__ import annotations

import bz2
import hashlib
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from fuzz.archives import archive_changed, arrays_changed, member, numbers_changed, packed
from fuzz.commands import command
from fuzz.owners import owner
from fuzz.templates import METHODS, NETWORKS, SVMLIGHT, Templates
from fuzz.texts import bytes_changed, json_changed, yaml_changed
from rewriting import Stored
from rewriting import packed as packed_state

Words = list[str]
Target = Callable[[Random, Path, Templates], Words]
ODD = (
    b"0:1",
    b"-1:1",
    b"1:nan",
    b"1:inf",
    b"1e1:1",
    b"1:1:1",
    b":1",
    b"1:",
    b"99999999999:1",
    b"2147483647:1",
    b"1:1e400",
    b"#",
    b"qid:1",
    b"nan",
    b"1:0x1",
    b"3:1 2:1",
    b"\xff:1",
    b"1_0:1",
    b"1:1_0",
)
LIMITED = ["--max-iterations", "30", "--max-seconds", "4"]


def solving(rng: Random, place: Path, folder: Path, network: str = "ring") -> Words:
    """A command that reads a problem, most often a short solve with an output folder."""
    kind = rng.random()
    base = [str(folder), "--network", network]
    if kind < 0.1:
        return ["geometry", *base]
    if kind < 0.2:
        return ["plan", *base, "--method", rng.choice(METHODS)]
    if kind < 0.25:
        return ["complexity", *base]
    out = ["--out", str(place / "result")] if rng.random() < 0.7 else []
    return ["solve", *base, *LIMITED, "--method", rng.choice(METHODS), *out]


def misplaced(rng: Random, path: Path) -> None:
    """Something else where a file was: nothing, a folder, a link, a pipe."""
    path.unlink()
    kind = rng.randrange(6)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path.name)
    elif kind == 3:
        path.symlink_to(rng.choice(("/dev/zero", "/dev/null", "/proc/self/mem", "..")))
    elif kind == 4:
        os.mkfifo(path)
    elif kind == 5:
        path.touch()
        path.chmod(0)


def problem(rng: Random, place: Path, made: Templates) -> Words:
    """``problem.yaml``, or a file of the folder gone."""
    folder = made.copy(rng.choice(("dispatch", "vertical")), place)
    path = folder / "problem.yaml"
    if rng.random() < 0.08:
        misplaced(rng, rng.choice(sorted(folder.iterdir())))
    else:
        path.write_bytes(yaml_changed(rng, path.read_text()))
    return solving(rng, place, folder)


def agent(rng: Random, place: Path, made: Templates) -> Words:
    """The arrays of an agent, with the checksum put right."""
    name = rng.choice(("dispatch", "vertical", "objectives", "objectives"))
    folder = made.objectives(rng, place) if name == "objectives" else made.copy(name, place)
    for path in rng.sample(sorted(folder.glob("agent*.npz")), rng.choice((1, 1, 2))):
        with np.load(path) as arrays:
            content = archive_changed(rng, dict(arrays))
        path.write_bytes(content)
    return solving(rng, place, checked(folder))


def checked(folder: Path) -> Path:
    """The problem with the checksums that its files have."""
    listing = yaml.safe_load((folder / "problem.yaml").read_text())
    for entry in listing["agents"]:
        content = (folder / entry["file"]).read_bytes()
        entry["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "problem.yaml").write_text(yaml.safe_dump(listing))
    return folder


def numbers(rng: Random, place: Path, made: Templates) -> Words:
    """Sound arrays with numbers that are large, tiny, zero or of the other sign."""
    name = rng.choice(("dispatch", "vertical", "objectives", "objectives"))
    folder = made.objectives(rng, place) if name == "objectives" else made.copy(name, place)
    seed = rng.random()
    common = rng.random() < 0.7
    for path in sorted(folder.glob("agent*.npz")):
        with np.load(path) as stored:
            arrays = dict(stored)
        if common or rng.random() < 0.4:
            arrays = numbers_changed(Random(seed) if common else rng, arrays)
        path.write_bytes(packed([(f"{k}.npy", member(v)) for k, v in arrays.items()]))
    return solving(rng, place, checked(folder))


def network(rng: Random, place: Path, made: Templates) -> Words:
    """A file of edges or weights."""
    name = rng.choice(sorted(NETWORKS))
    path = place / name
    text = NETWORKS[name]
    if rng.random() < 0.05:
        path.touch()
        misplaced(rng, path)
    elif name.endswith(".json") and rng.random() < 0.8:
        path.write_bytes(json_changed(rng, text))
    elif rng.random() < 0.6:
        lines = [line.split() for line in text.splitlines()]
        line = rng.choice(lines)
        word = rng.choice(
            (
                "-1",
                "6",
                "0.9",
                "1e3",
                "nan",
                "inf",
                "0x1",
                "",
                "x",
                "9" * 5000,
                "0",
                "²",
                "１",
                "1_0",
            )
        )
        line[rng.randrange(len(line))] = word
        path.write_text("\n".join(" ".join(line) for line in lines))
    else:
        path.write_bytes(bytes_changed(rng, text.encode()))
    return solving(rng, place, made.root / "dispatch", str(path))


def suite(rng: Random, place: Path, made: Templates) -> Words:
    """A suite file; it is read and expanded, none of its runs is executed."""
    path = place / "suite.yaml"
    path.write_bytes(yaml_changed(rng, (made.root / "suite.yaml").read_text()))
    more = rng.choice(([], ["--profile", "paper"], ["--max-runs", "5"]))
    return ["suite", "run", str(path), "--out", str(place / "runs"), "--only", "no such run", *more]


def svmlight(rng: Random, place: Path, made: Templates) -> Words:
    """Text of a table, plain or compressed."""
    content = SVMLIGHT.encode()
    if rng.random() < 0.6:
        words = content.split(b" ")
        word = rng.choice(ODD)
        words[rng.randrange(len(words))] = word
        content = b" ".join(words)
    else:
        content = bytes_changed(rng, content)
    suffix = rng.choice(("", ".bz2", ".xz"))
    if suffix and rng.random() < 0.9:
        content = bz2.compress(content) if suffix == ".bz2" else lzma.compress(content)
        content = bytes_changed(rng, content) if rng.random() < 0.5 else content
    path = place / f"table{suffix}"
    path.write_bytes(content)
    return ["read-svmlight", str(path)]


def checkpoint(rng: Random, place: Path, made: Templates) -> Words:
    """State or index of a stored run, with all checksums put right."""
    name, method = rng.choice((("checkpoint", "cross-apapc"), ("checkpoint-lbfgs", "cross-lbfgs")))
    folder = made.copy(name, place)
    stored = Stored(folder)
    if rng.random() < 0.8:  # nothing to fall back on
        stored.older.unlink(missing_ok=True)
    kind = rng.random()
    if kind < 0.06:
        misplaced(rng, rng.choice(sorted(folder.iterdir())))
    elif kind < 0.5:
        stored.content = state_changed(rng, stored)
        stored.write()
    elif kind < 0.6:
        trace = folder / stored.head["manifest"]["trace"]["file"]
        content = bytes_changed(rng, trace.read_bytes())
        trace.write_bytes(content)
        stored.head["manifest"]["trace"]["crc"] = zlib.crc32(content)
        stored.write()
    elif kind < 0.8:
        stored.write(json_changed(rng, json.dumps(stored.head)))
    else:
        stored.write_run(json_changed(rng, json.dumps(stored.run)))
        stored.head["run"] = stored.run["crc"]
        stored.write(json.dumps(stored.head).encode())
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--method", method]
    return [*words, "--checkpoint", str(folder), *LIMITED]


def state_changed(rng: Random, stored: Stored) -> bytes:
    """The state of agents: other arrays, another line that describes them, other bytes."""
    kind = rng.random()
    if kind < 0.2:
        return bytes_changed(rng, stored.content)
    header, _, body = stored.content.partition(b"\n")
    if kind < 0.5:
        return json_changed(rng, header.decode()) + b"\n" + body
    change = rng.choice((numbers_changed, numbers_changed, arrays_changed))
    if kind < 0.6:  # the newest rows of the trace
        return packed_state(stored.arrays(), change(rng, stored.shared()))
    return packed_state(change(rng, stored.arrays()), stored.shared())


def record(rng: Random, place: Path, made: Templates) -> Words:
    """What a suite left behind."""
    folder = made.copy("records", place)
    path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    path = folder / "suite.json" if rng.random() < 0.25 else path
    if rng.random() < 0.05:
        misplaced(rng, path)
    elif path.suffix == ".json":
        path.write_bytes(json_changed(rng, path.read_text()))
    else:
        words = re.split("([,\n])", path.read_text())
        words[rng.randrange(len(words))] = rng.choice(
            ("nan", "inf", "-1", "1e400", "x", "", '"', "1e308", ",", "-inf", "9" * 400)
        )
        text = "".join(words).encode()
        path.write_bytes(bytes_changed(rng, text) if rng.random() < 0.3 else text)
    kind = rng.choice(("status", "verify", "table", "report", "table", "figures"))
    if kind == "report":
        return ["report", str(folder), "-o", str(place / "report.html")]
    if kind == "figures" and rng.random() < 0.9:
        kind = "status"
    more = {
        "table": ["--format", rng.choice(("markdown", "latex", "csv", "json"))],
        "figures": ["--formats", "png"],
    }
    return ["suite", kind, str(folder), *more.get(kind, [])]


def warm(rng: Random, place: Path, made: Templates) -> Words:
    """The output of an earlier solve, to start from."""
    folder = made.copy("out", place)
    kind = rng.random()
    if kind < 0.06:
        misplaced(rng, rng.choice(sorted(folder.iterdir())))
    elif kind < 0.8:
        with np.load(folder / "solution.npz") as arrays:
            content = archive_changed(rng, dict(arrays))
        (folder / "solution.npz").write_bytes(content)
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        summary["parts"]["solution.npz"] = zlib.crc32(content)
        (folder / "summary.json").write_text(json.dumps(summary))
    else:
        path = folder / "summary.json"
        path.write_bytes(json_changed(rng, path.read_text()))
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--warm-start", str(folder)]
    return [*words, "--method", rng.choice(METHODS), *LIMITED]


TARGETS: dict[str, Target] = {
    "owner": owner,
    "problem": problem,
    "agent": agent,
    "numbers": numbers,
    "network": network,
    "suite": suite,
    "svmlight": svmlight,
    "checkpoint": checkpoint,
    "record": record,
    "warm": warm,
    "options": command,
}
