"""What owners and parties keep beside their settings: agents, certificates, tables."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
from pathlib import Path
from random import Random

import numpy as np
import yaml

from ccmac.problem import Problem
from fuzz.archives import archive_changed
from fuzz.owners import OWNER, PARTY, TOML
from fuzz.places import nothing_there
from fuzz.targets import Words
from fuzz.templates import Templates
from fuzz.texts import bytes_changed, yaml_changed

DIGITS = (
    "٣",
    "３",
    "²",
    "Ⅳ",
    "𝟛",
    "1e400",
    "-0",
    "+2",
    "0x3",
    "3.0",
    "1_0",
    " 3",
    "3 ",
    "",
    "٣" * 99,
    "nan",
    "1e-400",
    "9" * 400,
    "0" * 400 + "3",
    "3\n",
    "½",
    "\u200b3",
    "-3",
    "1e3",
)
TEXTS = (
    "\x00",
    "é",
    "\n",
    "x" * 300,
    "../../x",
    "/dev/zero",
    "/dev/tty",
    ".",
    "..",
    "",
    "~",
    "-",
    "a/b/c",
    "http://127.0.0.1:9/x",
    "file:///etc/hostname",
    "x.gz",
    "é" * 90,
)


def pem(kind: str, body: str) -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


PEM = (
    "",
    "x",
    "-----BEGIN CERTIFICATE-----\n",
    pem("CERTIFICATE", "MAo="),
    "\x00" * 100,
    pem("PRIVATE KEY", "MAo="),
    "-----BEGIN " * 1000,
    pem("ENCRYPTED PRIVATE KEY", "MIIC" * 16),
    pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + "A" * 64),
)


def owned(rng: Random, place: Path, made: Templates) -> Words:
    """An owner's agent folder, certificates and addresses; everything but the dialling is done."""
    agent = next(iter(Problem.load(made.root / "dispatch").agents.values()))
    agent.save(place / "agent")
    texts = {**OWNER, **{name: rng.choice(PEM) for name in ("c.pem", "k.pem", "a.pem")}}
    kind = rng.randrange(6)
    me = texts["me.toml"].replace("localhost", "127.0.0.1")
    if kind == 0:
        path = place / "agent" / "agent.yaml"
        path.write_bytes(yaml_changed(rng, path.read_text()))
    elif kind == 1:
        spoil_agent(rng, place / "agent")
    elif kind == 2:
        word = rng.choice(("certificate", "key", "authority", "folder", "out", "public", "listen"))
        told = rng.choice((*TEXTS, *(f"{t}:7001" for t in TEXTS)))
        me += f"# {word}\n"
        old = next(line for line in me.splitlines() if line.startswith(f"{word} = "))
        me = me.replace(old, f"{word} = {json.dumps(told, ensure_ascii=False)}", 1)
    elif kind == 3:
        name = rng.choice(("agent", "q", "m", "agents", "seed", "tol", "every", "wait"))
        where = "public.toml" if name in ("q", "m", "agents", "seed", "tol") else "me.toml"
        line = f"{name} = {rng.choice((*DIGITS, *TOML))}"
        lines = (me if where == "me.toml" else texts[where]).splitlines()
        lines = [line, *(given for given in lines if not given.startswith(f"{name} = "))]
        texts[where] = "\n".join(lines) + "\n"
        me = texts[where] if where == "me.toml" else me
    elif kind == 4:
        more = rng.choice(("sense", "z_lower", "z_upper", "row_names", "z_names", "options"))
        texts["public.toml"] += f"{more} = {rng.choice((*TOML, '[1.0, nan]', '{inner = 3}'))}\n"
    for file, text in (texts | {"me.toml": me}).items():
        (place / file).write_bytes(text.encode("utf-8", "surrogatepass"))
    if kind == 5:
        name = rng.choice(("c.pem", "k.pem", "a.pem", "public.toml", "agent/agent.npz"))
        (place / name).unlink()
        nothing_there(rng, place / name)
    return ["read-owned", str(place / "me.toml")]


def spoil_agent(rng: Random, folder: Path) -> None:
    """The arrays of an owner's agent, with the checksum put right."""
    with np.load(folder / "agent.npz") as arrays:
        content = archive_changed(rng, dict(arrays))
    (folder / "agent.npz").write_bytes(content)
    told = yaml.safe_load((folder / "agent.yaml").read_text())
    told["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "agent.yaml").write_text(yaml.safe_dump(told))


def table(rng: Random, place: Path, made: Templates) -> Words:
    """A party's table: quotes, NULs, ragged rows, encodings, compressed, no ordinary file."""
    texts = dict(PARTY)
    rows = [line.split(",") for line in texts["b.csv"].splitlines()]
    kind = rng.randrange(7)
    name = "b.csv"
    me = texts["me.toml"]
    content = texts["b.csv"].encode()
    if kind == 0:
        for _ in range(3):
            row = rng.choice(rows)
            row.insert(rng.randrange(len(row) + 1), rng.choice(('"a""b"', '"', "1", '"1\n2"', "")))
        content = "\n".join(map(",".join, rows)).encode()
    elif kind == 1:
        way = rng.choice(("utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "cp037"))
        content = texts["b.csv"].replace("id", rng.choice(("id", "ïd"))).encode(way)
    elif kind == 2:
        content = bytes_changed(rng, bytes_changed(rng, content))
    elif kind == 3:
        name, pack = rng.choice(
            (
                ("b.csv.gz", gzip.compress),
                ("b.csv.bz2", bz2.compress),
                ("b.csv.xz", lzma.compress),
                ("b.csv.zip", bytes),
                ("b.parquet", bytes),
                ("b.csv.tar", bytes),
                ("b.xlsx", bytes),
            )
        )
        content = pack(content)
        me = me.replace("b.csv", name)
    elif kind == 4:
        told = rng.choice(('["id", "u"]', '["u", "u"]', "[]", '["u", "v", "y"]', '["y"]', '[""]'))
        me = me.replace('["u", "v"]', told)
        me = me.replace('key = "id"', f'key = "{rng.choice(("id", "u", "y", "", "nan", "0"))}"')
    elif kind == 5:
        told = json.dumps(rng.choice(TEXTS), ensure_ascii=False)
        word = rng.choice(("table", "new", "out", "label", "party"))
        lines = [line for line in me.splitlines() if not line.startswith(f"{word} = ")]
        me = f"{word} = {told}\n" + "\n".join(lines)
    for file, text in texts.items():
        (place / file).write_bytes(text.encode())
    (place / "me.toml").write_bytes(me.encode())
    (place / name).write_bytes(content)
    if kind == 6:
        target = place / rng.choice(sorted(texts))
        target.unlink()
        nothing_there(rng, target)
    return ["read-party", str(place / "me.toml")]
