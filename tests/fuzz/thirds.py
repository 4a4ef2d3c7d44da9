"""A third family: folders that hold results of others, valid texts in rare styles, and numbers as
other alphabets write them; what owners and parties keep is in ``peers.py``."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from fuzz.archives import member, packed
from fuzz.peers import DIGITS, owned, table
from fuzz.places import nothing_there
from fuzz.targets import LIMITED, Target, Words, solving
from fuzz.templates import METHODS, NETWORKS, SVMLIGHT, Templates
from fuzz.texts import bytes_changed

KEEP = "nobody's business of ccmac"
OPTIONS = (
    "--tol",
    "--every",
    "--seed",
    "--max-iterations",
    "--max-seconds",
    "--costs",
    "--set",
    "--averaging",
    "--access",
    "--realization",
)


# -- folders of others -----------------------------------------------------------------------------
def folder(rng: Random, place: Path, made: Templates) -> Words:
    """``--out``, ``--checkpoint`` or ``--warm-start`` where something else is already."""
    names = ("out", "checkpoint", "checkpoint-lbfgs", "records", "dispatch", "vertical", "cut")
    used = made.copy(rng.choice(names), place).rename(place / "used")
    (used / "mine.txt").write_text(KEEP)
    files = sorted(p for p in used.iterdir() if p.is_file())
    kind = rng.randrange(7)
    if kind == 0:
        half = used / rng.choice((".ccmac-next", ".ccmac-new-123", ".ccmac-probe-x"))
        shutil.copytree(made.root / rng.choice(names), half)
    elif kind == 1:
        (used / ".ccmac-next").write_text("x")
    elif kind == 2 and (used / "summary.json").exists():
        told = json.loads((used / "summary.json").read_text())
        odd: tuple[Any, ...] = (
            "mine.txt",
            "../x",
            "",
            ".",
            "..",
            "a" * 300,
            "\x00",
            "/etc/hostname",
        )
        crc = zlib.crc32(KEEP.encode())
        told["parts"] = {rng.choice(odd): rng.choice((crc, 0, -1, None, "0", 2**70)) for _ in "ab"}
        told["parts"] = told["parts"] if rng.random() < 0.8 else rng.choice(([], "x", 3, None))
        (used / "summary.json").write_text(json.dumps(told))
    elif kind == 3:
        path = rng.choice(files)
        path.write_bytes(bytes_changed(rng, path.read_bytes()))
    elif kind == 4:
        path = rng.choice(files)
        path.unlink()
        nothing_there(rng, path)
    elif kind == 5:
        for path in rng.sample(files, 2):
            path.rename(path.with_name(rng.choice(("summary.json", "solution.npz", "z.json"))))
    problem = made.root / rng.choice(("dispatch", "dispatch", "vertical"))
    option = rng.choice(("--out", "--out", "--checkpoint", "--warm-start"))
    words = ["solve", str(problem), "--network", "ring", option, str(used), *LIMITED]
    return [*words, "--method", rng.choice(METHODS)]


def parts(rng: Random, place: Path, made: Templates) -> Words:
    """A solution in parts as ranks write them, that overlap, lack agents or disagree."""
    out = made.copy("out", place)
    with np.load(out / "solution.npz") as stored:
        arrays = dict(stored)
    own = sorted(k for k in arrays if k[:1] == "x" and k[1:].isdigit())
    (out / "solution.npz").unlink()
    told = {}
    at = rng.randrange(len(own) + 1)
    for k, names in enumerate((own[:at], own[at - rng.randrange(2) :], own[:1])):
        held = {n: a for n, a in arrays.items() if n in names or n not in own}
        if rng.random() < 0.5:
            key = rng.choice(sorted(held))
            held[key] = rng.choice(
                (held[key] * 2.0, held[key][:-1], held[key][None], np.float32(1))
            )
        content = packed([(f"{n}.npy", member(a)) for n, a in held.items()])
        name = rng.choice(
            (f"solution-{k:05d}.npz", f"solution-{k:05d}-{k + 1:05d}.npz", f"s{k}.npz")
        )
        (out / name).write_bytes(content)
        told[name] = zlib.crc32(content)
    summary = json.loads((out / "summary.json").read_text())
    (out / "summary.json").write_text(json.dumps(summary | {"parts": told}))
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--warm-start", str(out)]
    return [*words, "--method", rng.choice(METHODS), *LIMITED]


# -- texts -----------------------------------------------------------------------------------------
def styled(rng: Random, place: Path, made: Templates) -> Words:
    """YAML that says the same, or nearly, in rare styles: anchors, merges, tags, documents."""
    name = rng.choice(("suite", "problem"))
    if name == "suite":
        path = place / "suite.yaml"
        words = ["suite", "run", str(path), "--out", str(place / "runs"), "--only", "no such run"]
        text = (made.root / "suite.yaml").read_text()
    else:
        used = made.copy("dispatch", place)
        path = used / "problem.yaml"
        words = solving(rng, place, used)
        text = path.read_text()
    tree = yaml.safe_load(text)
    key = rng.choice(sorted(tree))
    inner = (
        yaml.safe_dump(tree[key], default_flow_style=True, width=10**6).strip().removesuffix("...")
    )
    rest = yaml.safe_dump({k: v for k, v in tree.items() if k != key}, sort_keys=False)
    ways = (
        f"{key}: &a {inner}\nmore: *a\n{rest}",
        f"base: &a {{{key}: {inner}}}\n<<: *a\n{rest}",
        f"<<: {{{key}: {inner}}}\n{rest}",
        f"<<: [{{{key}: {inner}}}, 3]\n{rest}",
        f"? {key}\n: {inner}\n{rest}",
        f"!!map\n{key}: {inner}\n{rest}",
        f"!!omap\n- {key}: {inner}\n",
        f"%TAG ! tag:x,2000:\n---\n{key}: !y {inner}\n{rest}",
        f"---\n{key}: {inner}\n{rest}---\n{rest}",
        f"...\n{key}: {inner}\n{rest}",
        f"{key}: !!str {inner}\n{rest}",
        f"{key}: !!set {{{key}}}\n{rest}",
        f"{key}: |\n  {inner}\n{rest}",
        f"{key}: >-\n\n\n  {inner}\n{rest}",
        f'"\\u{ord(key[0]):04x}{key[1:]}": {inner}\n{rest}',
        f"{key}: {inner} # {'x' * 10**5}\n{rest}",
        f"? {{a: b}}\n: 1\n{rest}",
        f"{key}: &{'a' * 5000} {inner}\n{rest}",
        f"{key}: [*{'b' * 5000}]\n{rest}",
        f"{'k' * 5000}: 1\n{rest}",
        f"{key}: !{'t' * 5000} {inner}\n{rest}",
        f"{key}: !!binary |\n  R0lGODlhDAAMAIQAAP\n{rest}",
        f"{key}: 0o777\n{rest}",
        f"{key}: {inner}\n" * 2 + rest,
        f"? [{key}, 1]\n: {inner}\n{rest}",
        f"{key}: &x\n  <<: *x\n{rest}",
        f"\t{key}: {inner}\n{rest}",
        f"{key}: {inner}\x85{rest}",
        f"{key}: {'[' * 90}{']' * 90}\n{rest}",
        f"{key}: {rng.choice(DIGITS)}\n{rest}",
    )
    path.write_bytes(rng.choice(ways).encode("utf-8", "surrogatepass"))
    return words


def lines(rng: Random, place: Path, made: Templates) -> Words:
    """LIBSVM and edge lists as other programs write them."""
    libsvm = rng.random() < 0.6
    rows = SVMLIGHT.splitlines() if libsvm else NETWORKS["weighted.txt"].splitlines()
    end = rng.choice(("\n", "\r\n", "\r", "\n\n", "\x0b", "\x0c", "\x85", "\u2028", "\x1e"))
    at = rng.randrange(len(rows))
    ways = (
        rows[at].replace(" ", "\t"),
        f"  {rows[at]}  ",
        f"{rows[at]} # {KEEP}",
        f"# {rows[at]}",
        rows[at].replace(":", rng.choice((" :", ": ", "::"))),
        f"+{rows[at]}",
        rows[at] * 2000,
        " ".join(reversed(rows[at].split())),
        rows[at].partition(" ")[0],
        rows[at] + " 8:1" * 9,
        rows[at].replace("1", rng.choice(DIGITS), 1),
        rows[at].replace(",", ";"),
        "," + rows[at],
        rows[at].replace("0", rng.choice(DIGITS)),
        f"{rows[at]} 3:1 3:1",
        f"{rows[at]} -1:1",
        f"{rows[at]} 99999999:1",
        rows[at].replace(".", ","),
        f'"{rows[at]}"',
        rows[at] + "\x00",
    )
    rows[at] = rng.choice(ways)
    content = (end.join(rows) + rng.choice(("", end))).encode(rng.choice(("utf-8", "utf-8-sig")))
    path = place / ("table" if libsvm else "edges.txt")
    path.write_bytes(content)
    if libsvm:
        return ["read-svmlight", str(path)]
    return solving(rng, place, made.root / "dispatch", str(path))


def spelled(rng: Random, place: Path, made: Templates) -> Words:
    """Specifications and options with numbers of other alphabets and characters left out."""
    specs = ("grid:2x3", "erdos_renyi:0.6:3", "random_regular:2:1", "ring", "ring:6", "torus:2x3")
    spec = list(rng.choice(specs))
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(spec))
        spec[at] = rng.choice((*DIGITS, ":", "", "x", "=", ",", ".", "-", "/"))
    text = "".join(spec).replace("\x00", "")
    dispatch = str(made.root / "dispatch")
    out = str(place / "result")
    if rng.random() < 0.5:
        return ["solve", dispatch, "--network", text, "--out", out, *LIMITED]
    option = rng.choice(OPTIONS)
    value = rng.choice(DIGITS)
    if option == "--costs":
        value = rng.choice(("gradient=", "round=", "=", "gradient=1,", "gradient:")) + value
    if option == "--set":
        value = (
            rng.choice(("inner=", "scale=", "normalizer=", "inner==", "Inner=", "", "a.b=")) + value
        )
    words = ["solve", dispatch, "--network", "ring", "--out", out, option, value]
    words += ["--checkpoint", str(place / "state")] if option == "--every" else []
    words += ["--method", "cross-apapc"] if option == "--set" else []
    return [*words, *(w for k, w in enumerate(LIMITED) if LIMITED[k - k % 2] != option)]


THIRDS: dict[str, Target] = {
    "owned": owned,
    "table": table,
    "folder": folder,
    "parts": parts,
    "styled": styled,
    "lines": lines,
    "spelled": spelled,
}
