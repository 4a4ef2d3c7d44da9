"""A second family of changes, made otherwise than the first: by tables, not at random places.

Kinds, orders and ranks for every array; index arrays of sparse blocks; keys and scalars of trees
swapped by type; archives whose directory lies.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from fuzz.archives import member, packed
from fuzz.owners import party
from fuzz.places import odd_file, words
from fuzz.targets import LIMITED, Target, Words, checked, solving
from fuzz.templates import NETWORKS, Templates
from rewriting import Stored
from rewriting import packed as packed_state

KINDS = (
    "<f2",
    "<f4",
    ">f8",
    "<f8",
    "<g",
    "<c8",
    "<c16",
    "|b1",
    "|i1",
    "|u1",
    "<i2",
    ">i8",
    "<u8",
    "<M8[ns]",
    "<m8[D]",
    "<U7",
    "|S5",
    "|V3",
    "<f8,<f8",
    "(2,)<f8",
)
VALUES = (
    float("nan"),
    float("inf"),
    -float("inf"),
    1.7e308,
    -1.7e308,
    2.3e-308,
    4.9e-324,
    1e200,
    1e-200,
    -0.0,
    1e16,
    2.0**53 + 2,
    1e100,
    -1e39,
    3.5e38,
)
SWAPS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    10**18,
    -(10**18),
    2**63,
    2**64,
    10**40,
    0.5,
    -0.5,
    1e308,
    1e-308,
    "",
    "0",
    "1",
    "-1",
    "true",
    "null",
    "1e9",
    "\ufeff",
    "a\x07b",
    "\u2028",
    "e\u0301",
    "💥" * 30,
    [],
    {},
    [[]],
    [None],
    [0],
    [1, 2, 3],
    {"": 0},
    {"a": {"a": {"a": {}}}},
    [1.5, "x", None],
)


def ordered(rng: Random, array: Any) -> Any:
    """The same numbers in another memory layout, rank or kind, or one entry of another value."""
    kind = rng.randrange(8)
    if kind == 0:
        with np.errstate(all="ignore"):
            try:
                return array.astype(np.dtype(rng.choice(KINDS)))
            except (TypeError, ValueError):
                return np.zeros(array.shape, np.dtype(rng.choice(KINDS)))
    if kind == 1:
        return np.asfortranarray(np.atleast_2d(array)[::-1])
    if kind == 2:
        return array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1), (1,) * 20 + (-1,))))
    if kind == 3:
        return np.zeros(rng.choice(((), (0,), (0, 0), (0, 7), (7, 0), (1,), (1, 1), (3, 3, 3))))
    if kind == 4 and array.ndim:
        return np.roll(array, 1, axis=rng.randrange(array.ndim))[..., : rng.randrange(1, 4)]
    if array.dtype.kind == "f" and array.size:
        new = array.copy()
        new.reshape(-1)[rng.randrange(new.size) :: rng.choice((1, 3, 10**6))] = rng.choice(VALUES)
        return new
    return np.repeat(np.atleast_1d(array), rng.choice((2, 1000)), axis=0)


def layout(rng: Random, place: Path, made: Templates) -> Words:
    """Arrays of an agent in other layouts; a name more, less, or for another one's."""
    name = rng.choice(("dispatch", "vertical", "objectives"))
    folder = made.objectives(rng, place) if name == "objectives" else made.copy(name, place)
    path = rng.choice(sorted(folder.glob("agent*.npz")))
    with np.load(path) as stored:
        arrays = dict(stored)
    names = sorted(arrays)
    one = rng.choice(names)
    two = rng.choice(names)
    kind = rng.randrange(5)
    if kind == 0:
        arrays[one], arrays[two] = arrays[two], arrays[one]
    elif kind == 1:
        arrays[rng.choice(("C", "c", "D", "e", "lower", "upper", "name", "G.data"))] = arrays[one]
    else:
        arrays[one] = ordered(rng, arrays[one])
    path.write_bytes(packed([(f"{k}.npy", member(v)) for k, v in arrays.items()]))
    return solving(rng, place, checked(folder))


def sparse(rng: Random, place: Path, made: Templates) -> Words:
    """Index arrays of a sparse block: out of range, unsorted, double, of narrow kinds."""
    folder = made.copy("vertical", place)
    for path in sorted(folder.glob("agent*.npz"))[: rng.choice((1, 1, 6))]:
        with np.load(path) as stored:
            arrays = dict(stored)
        part = rng.choice(("indices", "indptr", "shape", "data"))
        for key in [key for key in arrays if key.endswith(f".{part}")]:
            arrays[key] = indexed(rng, arrays[key])
        path.write_bytes(packed([(f"{k}.npy", member(v)) for k, v in arrays.items()]))
    return solving(rng, place, checked(folder))


def indexed(rng: Random, array: Any) -> Any:
    """An index array that lies."""
    new = array.astype(rng.choice(("i8", "i4", "i2", "i1", "u1", "u4", "u8", array.dtype.str)))
    kind = rng.randrange(8)
    if kind == 0:
        return new[::-1]
    if kind == 1:
        return np.full_like(new, new.flat[0] if new.size else 0)
    if kind == 2:
        return np.append(new, new[-1:])
    if kind == 3:
        return new[: len(new) // 2]
    if kind == 4:
        return np.zeros_like(new)
    if new.size and new.dtype.kind in "iu":
        info = np.iinfo(new.dtype)
        new.flat[rng.randrange(new.size)] = rng.choice((info.max, info.min, info.max // 2, 3))
    return new.astype(float) if kind == 5 else new


def swapped(rng: Random, tree: Any) -> Any:
    """A tree with one value of another type, deep inside, or a key that is double or odd."""
    found: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    if isinstance(tree, dict | list):
        walk(tree)
    if not found:
        return rng.choice(SWAPS)
    deep = max(range(3), key=lambda _: rng.random())
    node, key = found[rng.randrange(len(found))] if deep else found[-1 - rng.randrange(len(found))]
    if rng.random() < 0.15 and isinstance(node, dict):
        node[rng.choice(("", " ", "\u0000", str(key).upper(), f"{key} ", f"{key}\u200b"))] = node[
            key
        ]
    node[key] = rng.choice(SWAPS)
    return tree


def dressed(rng: Random, text: str) -> bytes:
    """The text in another encoding or with other line ends, most often as it is."""
    ways: tuple[Any, ...] = (
        lambda t: t.encode(),
        lambda t: t.encode(),
        lambda t: t.encode(),
        lambda t: t.encode(),
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: t.replace("\n", "\r").encode(),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16-le"),
        lambda t: t.encode("utf-32"),
        lambda t: t.replace(" ", "\t").encode(),
        lambda t: t.replace(" ", "\u00a0").encode(),
        lambda t: (t + "\x1a").encode(),
        lambda t: t.replace("e", "\udc80", 1).encode("utf-8", "surrogatepass"),
        lambda t: t.encode()[: rng.randrange(len(t))] + b"\x00",
        lambda t: (t + t).encode(),
        lambda t: "\n".join(reversed(t.splitlines())).encode(),
    )
    return bytes(rng.choice(ways)(text))


def listing(rng: Random, place: Path, made: Templates) -> Words:
    """``problem.yaml`` or a suite with a value swapped or a line given twice."""
    if rng.random() < 0.5:
        path = place / "suite.yaml"
        text = (made.root / "suite.yaml").read_text()
        words = ["suite", "run", str(path), "--out", str(place / "runs"), "--only", "no such run"]
    else:
        folder = made.copy(rng.choice(("dispatch", "vertical")), place)
        path = folder / "problem.yaml"
        words = solving(rng, place, folder)
        text = path.read_text()
    lines = text.splitlines()
    kind = rng.randrange(4)
    if kind == 0:
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        text = "\n".join(lines) + "\n"
    elif kind == 1:
        k = rng.randrange(len(lines))
        mark = rng.choice(
            (" &a", " *a", " !!str", " |2", " >-", ": :", " # ", " ? ", " <<: *a", ",")
        )
        lines[k] = lines[k].replace(":", ":" + mark, 1) if rng.random() < 0.7 else lines[k] + mark
        text = "\n".join(lines) + "\n"
    else:
        tree = swapped(rng, yaml.safe_load(text))
        text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=rng.random() < 0.3)
    path.write_bytes(dressed(rng, text))
    return words


def resumed(rng: Random, place: Path, made: Templates) -> Words:
    """A checkpoint whose arrays or numbers have changed places, all checksums put right."""
    name, method = rng.choice((("checkpoint", "cross-apapc"), ("checkpoint-lbfgs", "cross-lbfgs")))
    folder = made.copy(name, place)
    stored = Stored(folder)
    stored.older.unlink(missing_ok=True)
    kind = rng.randrange(4)
    if kind <= 1:
        held = stored.arrays()
        one = rng.choice(sorted(held))
        two = rng.choice(sorted(held))
        if kind:
            held[one], held[two] = held[two], held[one]
        else:
            held[one] = ordered(rng, held[one])
        stored.content = packed_state(held, stored.shared())
        stored.write()
    elif kind == 2:
        stored.head["manifest"] = swapped(rng, stored.head["manifest"])
        stored.write()
    else:
        stored.write(json.dumps(swapped(rng, stored.head)).encode())
    words = ["solve", str(made.root / "dispatch"), "--network", "ring", "--method", method]
    return [*words, "--checkpoint", str(folder), *LIMITED]


def zipped(rng: Random, place: Path, made: Templates) -> Words:
    """An archive whose directory lies about sizes, places and counts."""
    folder = made.copy("dispatch", place)
    path = folder / "agent-0000.npz"
    whole = bytearray(path.read_bytes())
    end = whole.rfind(b"PK\x05\x06")
    entry = whole.find(b"PK\x01\x02")
    spots = (
        (entry + 20, "<I"),
        (entry + 24, "<I"),
        (entry + 42, "<I"),
        (end + 8, "<H"),
        (end + 10, "<H"),
        (end + 12, "<I"),
        (end + 16, "<I"),
        (end + 20, "<H"),
        (18, "<I"),
        (22, "<I"),
        (26, "<H"),
        (28, "<H"),
        (8, "<H"),
    )
    for spot, form in rng.sample(spots, rng.choice((1, 1, 2))):
        size = struct.calcsize(form)
        value = rng.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), rng.randrange(256)))
        whole[spot : spot + size] = struct.pack(form, value)
    cut = rng.randrange(len(whole)) if rng.random() < 0.2 else len(whole)
    path.write_bytes(bytes(whole[:cut]))
    return solving(rng, place, checked(folder))


def edges(rng: Random, place: Path, made: Templates) -> Words:
    """A file of a network, its values swapped by type."""
    name = rng.choice(("edges.json", "named.json", "weights.json"))
    tree = swapped(rng, json.loads(NETWORKS[name]))
    (place / name).write_bytes(dressed(rng, json.dumps(tree, ensure_ascii=False)))
    return solving(rng, place, made.root / "dispatch", str(place / name))


OTHERS: dict[str, Target] = {
    "layout": layout,
    "sparse": sparse,
    "listing": listing,
    "resumed": resumed,
    "zipped": zipped,
    "edges": edges,
    "odd_file": odd_file,
    "words": words,
    "party": party,
}
