"""Changes of ``.npz`` archives: arrays of other kinds and shapes, headers that lie, odd zips."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from random import Random
from typing import Any

import numpy as np

from fuzz.texts import JSON_SCALARS, Tree, bytes_changed

Named = dict[str, Any]
DTYPES = (
    "c16",
    "f2",
    "f4",
    ">f8",
    "i1",
    "i8",
    ">i4",
    "u8",
    "?",
    "U3",
    "S3",
    "M8[s]",
    "m8[s]",
    "V8",
    [("a", "f8"), ("b", "i4")],
    "g",
    "U0",
    "V0",
)
VALUES = (
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    -1e308,
    5e-324,
    0.0,
    -1.0,
    1e30,
    1e-30,
    2.0**63,
    0.5,
    1e160,
)
SCALES = (
    1e45,
    1e30,
    1e-30,
    1e8,
    1e-8,
    1e-45,
    1e-100,
    1e-155,
    1e300,
    1e-300,
    0.0,
    -1.0,
    5e-324,
    1e-12,
    1e12,
)
HEADERS = (
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2)}",
    "{'descr': '<f8', 'fortran_order': 3, 'shape': (1,)}",
    "{'descr': '<f8', 'fortran_order': True, 'shape': ()}",
    "{'descr': '<f99', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': [('a', '<f8', (99999999,))], 'fortran_order': False, 'shape': (0,)}",
    "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}",
    "{'descr': ('<f8', {'x': 1}), 'fortran_order': False, 'shape': (1,)}",
    "{'descr': 7, 'fortran_order': False, 'shape': 1}",
    "{'descr': '<f8', 'fortran_order': False}",
    "{}",
    "[]",
    "1",
    "",
    "(" * 3000,
    "{'a': " * 500,
    "__import__('os')",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}",
    "{'descr': '<U99999999', 'fortran_order': False, 'shape': ()}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 70 + ")}",
)


def member(array: Any) -> bytes:
    """An ``.npy`` file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def headed(header: str, body: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """An ``.npy`` file with a header of one's own."""
    text = header.encode("latin-1", "replace") + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text) % 65536)
    return b"\x93NUMPY" + bytes(version) + length + text + body


def packed(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of double names, which are meant
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return stream.getvalue()


def array_changed(rng: Random, array: Any) -> Any:
    """Another kind, shape, order or value."""
    kind = rng.randrange(9)
    if array.dtype.kind == "U" and array.ndim == 0 and rng.random() < 0.9:
        return np.array(objective_changed(rng, str(array)))
    if kind <= 1:
        dtype = np.dtype(rng.choice(DTYPES))
        try:
            return array.astype(dtype)
        except (TypeError, ValueError, RuntimeError):
            return np.zeros(array.shape, dtype)
    if kind == 2:
        return rng.choice(
            (
                array.reshape(-1)[:1].reshape(()) if array.size else np.array(1.0),
                array[None],
                array[..., None],
                array.T,
                np.asfortranarray(array),
                array.ravel(),
                np.zeros(0),
                np.zeros((0, 3)),
                np.zeros((3, 0)),
            )
        )
    if kind == 3:
        flat = array.ravel()
        return np.concatenate([flat, flat]) if array.ndim < 2 else np.vstack([array, array])
    if kind == 4:
        return array[: len(array) // 2] if array.ndim else array
    if array.dtype.kind in "iu" and array.size:
        new = array.copy()
        new.flat[rng.randrange(new.size)] = rng.choice((-1, 0, 1, 7, 2**31 - 1, 10**6))
        return new[::-1].copy() if kind == 5 else new
    if array.dtype.kind == "f" and array.size:
        new = array.copy()
        if kind == 5:
            return np.full_like(array, rng.choice(VALUES))
        if kind == 6:
            return new * rng.choice((1e30, 1e-30, 1e155, 1e300, -1.0, 0.0))
        new.flat[rng.randrange(new.size)] = rng.choice(VALUES)
        return new
    return np.array(rng.choice(("", "x", "{}")))


def objective_changed(rng: Random, text: str) -> str:
    """The JSON of an objective, changed; a text that is none, or too deep already, stays."""
    try:
        tree = Tree(rng, json.loads(text))
    except (ValueError, RecursionError):
        return text + "x"
    tree.change(JSON_SCALARS)
    return tree.json().encode("utf-8", "replace").decode()


def arrays_changed(rng: Random, arrays: Named) -> Named:
    """One to three arrays changed, removed, renamed or added."""
    out = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not out:
            break
        name = rng.choice(sorted(out))
        kind = rng.randrange(10)
        if kind <= 6:
            out[name] = array_changed(rng, np.asanyarray(out[name]))
        elif kind == 7:
            del out[name]
        elif kind == 8:
            out[rng.choice(sorted(out))] = out[name]
        else:
            out[rng.choice(("A", "B.indptr", "b", "x9", "../x", "z", "", "ü", "x" * 300))] = out[
                name
            ]
    return out


def numbers_changed(rng: Random, arrays: Named) -> Named:
    """The same arrays with other numbers in them: scaled, set, or one entry of each."""
    names = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
    out = dict(arrays)
    factor = rng.choice(SCALES)
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 20)))):
        new = np.array(out[name])
        kind = rng.randrange(3)
        if kind == 0:
            new *= factor
        elif kind == 1:
            new.flat[rng.randrange(new.size)] = factor
        else:
            new.reshape(-1)[:: rng.choice((1, 2))] = factor
        out[name] = new
    return out


def archive_changed(rng: Random, arrays: Named) -> bytes:
    """The bytes of an archive with changed arrays, headers or zip structure."""
    kind = rng.randrange(-4, 20)
    if kind < 0:
        return packed([(f"{k}.npy", member(v)) for k, v in numbers_changed(rng, arrays).items()])
    if kind <= 11:
        return packed([(f"{k}.npy", member(v)) for k, v in arrays_changed(rng, arrays).items()])
    parts = [(f"{k}.npy", member(v)) for k, v in arrays.items()]
    spot = rng.randrange(len(parts))
    name, content = parts[spot]
    if kind <= 13:
        version = rng.choice(((1, 0), (2, 0), (3, 0), (9, 9)))
        parts[spot] = name, headed(rng.choice(HEADERS), content[rng.choice((0, 128)) :], version)
    elif kind == 14:
        parts[spot] = name, bytes_changed(rng, content)
    elif kind == 15:
        parts.append(
            rng.choice(
                (
                    (name, content),
                    ("folder/", b""),
                    ("x.txt", b"hello"),
                    ("../../x.npy", content),
                    (name, b""),
                    ("a" * 60000 + ".npy", content),
                )
            )
        )
    elif kind == 16:
        bomb = headed(
            "{'descr': '<f8', 'fortran_order': False, 'shape': (20000000,)}", bytes(8 * 10**6)
        )
        parts[spot] = name, bomb
        return packed(parts, zipfile.ZIP_DEFLATED)
    whole = bytearray(packed(parts))
    if kind == 17:
        for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = whole.find(sign)
            whole[place + offset] |= rng.choice((1, 8, 64))
    elif kind == 18:
        place = whole.find(b"PK\x01\x02") + rng.choice((10, 16, 20, 24, 28, 30, 42))
        whole[place] ^= rng.choice((1, 8, 255))
    elif kind == 19:
        return rng.choice(
            (
                member(np.zeros(3)),
                bytes(whole) + b"tail",
                b"head" + bytes(whole),
                bytes_changed(rng, bytes(whole)),
            )
        )
    return bytes(whole)
