"""Changes of sound files: trees of YAML and JSON, bytes, arrays and archives."""

# ruff: noqa: SIM905 (words in a row are easier to read)
from __future__ import annotations

import copy
import io
import json
import zipfile
from random import Random
from typing import Any

import numpy as np
import yaml

HUGE = "9" * 5000
TEXTS = ("", " ", "x", "ring", "../../etc/passwd", "a\nb", "\x00", "ü", "x" * 3000, "%s{}")
# Scalars as they stand in a file: each has made some reader fail somewhere.
YAML_SCALARS = (
    *"~ null true no 0 -1 1 2 3.5 1e999 -.inf .nan 2024-13-45 2024-01-01 0x 0b 0o17 017".split(),
    *"1_000 12:30:45 << = '1' [] {} *nowhere 1e400 -0 +1 .5 @ ` % | > ' [ { ]".split(),
    *("", "!!int foo", "!!float x", "!!binary x", "!!python/name:os.system", "!a b"),
    *("!!set {a}", "{a: 1, a: 2}", "&a [*a]", "{? [1] : 2}", "{1: 2}", "- 1", "a: b: c"),
    *(HUGE, "9" * 30, "0x" + "f" * 4000, "x" * 5000, '"\\ud800"', "18446744073709551616", "5e-324"),
)
JSON_SCALARS = (
    *"null true 0 -1 1 2.5 1e308 -1e308 1e999 NaN Infinity [] {} [[]] [1] 5e-324 -0 0.9".split(),
    *'"" "x" "1" "nan" "inf" 01 1. [1,] nul "\\ud800" "\\u0000" 4294967296'.split(),
    *('{"a": 1, "a": 2}', '{"array": "A"}', '{"number": "nan"}', '{"csr": "B"}', '{"list": [1]}'),
    *('{"objective": {}}', '{"objective": {"kind": "Zero", "state": {}}}', "9" * 30, HUGE),
    *("[" * 300 + "]" * 300, "[" * 100000, '"' + "x" * 5000 + '"', "18446744073709551616"),
)
JUNK = (b"", b"\n", b"\x00" * 100, b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"{", b"[" * 10**5)


def bytes_changed(rng: Random, content: bytes) -> bytes:
    """Cut, flipped, repeated, re-encoded, or something else altogether."""
    spot = rng.randrange(len(content) + 1)
    size = rng.choice((1, 2, 7, 100))
    before = content[:spot]
    middle = content[spot : spot + size]
    after = content[spot + size :]
    return rng.choice(
        (
            before,
            before + rng.randbytes(size) + content[spot:],
            before + after,
            before + bytes(b ^ (1 << rng.randrange(8)) for b in middle) + after,
            b"\xef\xbb\xbf" + content,
            content.decode("latin-1").encode("utf-16"),
            before + b"\xff\xfe\x80\x00" + content[spot:],
            content * 20,
            content.replace(b"\n", b"\r\n"),
            rng.choice(JUNK),
            b"\n".join(rng.sample(content.split(b"\n"), content.count(b"\n") + 1)),
        )
    )


def tree_changed(rng: Random, content: Any, scalars: tuple[str, ...]) -> tuple[Any, dict[str, str]]:
    """(the tree with one to three changes, what its placeholders stand for)."""
    raw: dict[str, str] = {}

    def odd() -> str:
        name = f"@@{len(raw)}@@"
        raw[name] = rng.choice(scalars)
        return name

    root = [copy.deepcopy(content)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        node, key = rng.choice(list(_places(root)))
        kind = rng.randrange(9)
        if kind <= 3:
            node[key] = odd()
        elif kind == 4 and node is not root:
            del node[key]
        elif kind == 5:
            node[key] = rng.choice(([node[key]], {"a": node[key]}, [node[key]] * 3, str(node[key])))
        elif kind == 6:
            other, name = rng.choice(list(_places(root)))
            node[key] = copy.deepcopy(other[name])
        elif kind == 7 and type(node[key]) in (int, float):
            node[key] = rng.choice((-node[key], node[key] + 1, node[key] * 10**9, node[key] / 3))
        elif isinstance(node, dict):
            node[rng.choice(TEXTS)] = node.pop(key) if rng.random() < 0.5 else odd()
        else:
            node[key] = odd()
    return root[0], raw


def _places(node: Any) -> Any:
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def _filled(text: str, raw: dict[str, str]) -> bytes:
    for name, scalar in raw.items():
        for quoted in (f"'{name}'", f'"{name}"', name):
            text = text.replace(quoted, scalar)
    return text.encode("utf-8", "surrogatepass")


def yaml_changed(rng: Random, text: str) -> bytes:
    """The text of a YAML file, changed; now and then with an alias bomb."""
    if rng.random() < 0.15:
        return bytes_changed(rng, text.encode())
    tree, raw = tree_changed(rng, yaml.safe_load(text), YAML_SCALARS)
    out = _filled(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True), raw)
    if rng.random() < 0.05:
        bomb = "".join(f", &b{k} [{', '.join([f'*b{k - 1}'] * 9)}]" for k in range(1, 30))
        out = f"bomb: [&b0 [x, x]{bomb}]\n".encode() + out
    return out


def json_changed(rng: Random, text: str) -> bytes:
    """The text of a JSON file, changed."""
    if rng.random() < 0.15:
        return bytes_changed(rng, text.encode())
    tree, raw = tree_changed(rng, json.loads(text), JSON_SCALARS)
    return _filled(json.dumps(tree), raw)


# -- archives --------------------------------------------------------------------------------------
Named = dict[str, Any]
DTYPES = ("c16", "f4", ">f8", "i1", "i8", "u8", "?", "U3", "S3", "M8[s]", "m8[s]", "V8", "g", "U0")
VALUES = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -1.0, 1e30, 1e-30, 2.0**63, 1e160)
SCALES = (1e45, 1e30, 1e-30, 1e8, 1e-8, 1e-45, 1e-155, 1e300, 1e-300, 0.0, -1.0, 5e-324, 1e12)
SHAPES = ("(10**9,)", "(1000000000000,)", "(-1,)", "(4294967296, 4294967296)", "(True, 2)", "7", "")
HEADERS = (
    *(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}" for shape in SHAPES),
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f99', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<U99999999', 'fortran_order': False, 'shape': ()}",
    *("{}", "[]", "1", "", "(" * 3000, "{'a': " * 500, "__import__('os')"),
)


def packed(arrays: Named) -> bytes:
    """The bytes of an archive."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def headed(header: str, body: bytes) -> bytes:
    """An array file with a header of one's own."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + (len(text) % 65536).to_bytes(2, "little") + text + body


def array_changed(rng: Random, array: Any) -> Any:
    """Another kind, shape, order or value."""
    if array.dtype.kind == "U" and array.ndim == 0:
        try:
            text = json_changed(rng, str(array)).decode("utf-8", "replace")
        except (ValueError, RecursionError):
            text = str(array) + "x"
        return np.array(text.replace("\x00", ""))
    kind = rng.randrange(6)
    if kind == 0:
        dtype = np.dtype(rng.choice(DTYPES))
        try:
            return array.astype(dtype)
        except (TypeError, ValueError):
            return np.zeros(array.shape, dtype)
    if kind == 1:
        return rng.choice((array[None], array.T, array.ravel(), np.zeros((0, 3)), np.array(1.0)))
    if kind == 2:
        return np.concatenate([array.ravel(), array.ravel()])
    if kind == 3 or array.size == 0 or array.dtype.kind not in "iuf":
        return array[: len(array) // 2] if array.ndim else array
    new = array.copy()
    if array.dtype.kind in "iu":
        new.flat[rng.randrange(new.size)] = rng.choice((0, 1, 7, 2**31 - 1)) % 256
    elif kind == 4:
        return np.full_like(array, rng.choice(VALUES))
    else:
        new.flat[rng.randrange(new.size)] = rng.choice(VALUES)
    return new


def arrays_changed(rng: Random, arrays: Named) -> Named:
    """One to three arrays changed, removed, exchanged or added."""
    out = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(out))
        kind = rng.randrange(10)
        if kind <= 6:
            out[name] = array_changed(rng, np.asarray(out[name]))
        elif kind == 7 and len(out) > 1:
            del out[name]
        elif kind == 8:
            out[name] = out[rng.choice(sorted(out))]
        else:
            out[rng.choice(("A", "B.indptr", "b", "x9", "z", "ü", "x" * 300))] = out[name]
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
    kind = rng.randrange(10)
    if kind <= 1:
        return packed(numbers_changed(rng, arrays))
    if kind <= 5:
        return packed(arrays_changed(rng, arrays))
    if kind == 6:
        return bytes_changed(rng, packed(arrays))
    with zipfile.ZipFile(io.BytesIO(packed(arrays))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(parts))
    compression = zipfile.ZIP_STORED
    if kind == 7:
        parts[name] = headed(rng.choice(HEADERS), parts[name][rng.choice((0, 128)) :])
    elif kind == 8:
        parts[name] = bytes_changed(rng, parts[name])
    else:
        parts[name] = headed(HEADERS[0], bytes(8 * 10**6))
        compression = zipfile.ZIP_DEFLATED
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for member, content in parts.items():
            archive.writestr(zipfile.ZipInfo(member), content, compression)
    return stream.getvalue()
