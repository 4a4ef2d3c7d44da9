"""The TOML files of an owner or a party, a party's table and model, changed."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fuzz.templates import Templates
from fuzz.texts import bytes_changed, json_changed

Words = list[str]
OWNER = {
    "public.toml": 'agents = 4\nq = 2\nm = 3\nnetwork = "ring"\nmethod = "auto"\ntol = 1e-6\n'
    'seed = 0\nnames = ["a", "b", "c", "d"]\n',
    "me.toml": 'public = "public.toml"\nagent = 1\nfolder = "agent"\ncertificate = "c.pem"\n'
    'key = "k.pem"\nauthority = "a.pem"\nout = "out"\nlisten = "localhost:7001"\npatience = 5.0\n'
    '[neighbors]\n0 = "localhost:7000"\n',
}
TOML = (
    "",
    "-1",
    "0",
    "1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "true",
    '""',
    '"x"',
    "[]",
    "{}",
    "1e400",
    "9" * 30,
    "9" * 5000,
    "0x" + "f" * 5000,
    "2024-13-45",
    "1979-05-27",
    "07:32:00",
    "[" * 500,
    "[" * 90000,
    "{a = 1, a = 2}",
    '"localhost:000001' + "0" * 5000 + '"',
    '"localhost:99999"',
    '":1"',
    '"ring:3"',
    '"grid:2x2"',
    '"../x"',
    '"' + "x" * 5000 + '"',
    "1_000_000_000",
    '["a", "a"]',
    "[[1]]",
    '"random_regular:3:0"',
    "100000000000",
    '"\\u0000"',
    '"\\ud800"',
)


def owner(rng: Random, place: Path, made: Templates) -> Words:
    """The two files of an owner; they are read and compared, nobody is dialled."""
    texts = dict(OWNER)
    name = rng.choice(sorted(texts))
    lines = texts[name].splitlines()
    at = rng.randrange(len(lines))
    key = lines[at].partition(" = ")[0]
    kind = rng.randrange(6)
    if kind <= 2:
        lines[at] = f"{key} = {rng.choice(TOML)}"
    elif kind == 3:
        lines[at] = rng.choice(("", lines[at - 1], "[neighbors]", f"{key} = ", f"x{key} = 1"))
    texts[name] = "\n".join(lines) + "\n"
    for file, text in texts.items():
        content = text.encode()
        changed = kind >= 4 and file == name
        (place / file).write_bytes(bytes_changed(rng, content) if changed else content)
    return ["read-owner", str(place / "me.toml")]


PARTY = {
    "me.toml": 'party = "b"\nparties = ["a", "b"]\ntable = "b.csv"\nkey = "id"\nout = "."\n'
    'label = "y"\ncolumns = ["u", "v"]\nnew = "b.csv"\n[model]\nregularization = 0.1\n',
    "b.csv": "id,u,v,y\n" + "".join(f"k{i},{i / 7:.3f},{i % 3},{i % 2}\n" for i in range(9)),
    "model.json": '{"format": "ccmac-vfl-party", "version": 1, "party": "b", '
    '"columns": ["u", "v"], "coef": [[1.0], [2.0]], "offset": [0.5], "classes": []}',
}
CELLS = (
    "",
    "nan",
    "inf",
    "-1e400",
    "1e308",
    "x",
    '"',
    '"a\nb"',
    "0x1",
    "k0",
    "True",
    "9" * 400,
    "\x00",
    "é",
    ",,",
    "1,2",
    "2024-01-01",
    " 1",
    "1 ",
    "'1'",
    "=1+1",
    "-",
    "1e",
)


def party(rng: Random, place: Path, made: Templates) -> Words:
    """What a party of a vertical model reads: its file, its table, its model."""
    texts = dict(PARTY)
    name = rng.choice(sorted(texts))
    if rng.random() < 0.4:
        content = bytes_changed(rng, texts[name].encode())
    elif name == "model.json":
        content = json_changed(rng, texts[name])
    elif name == "me.toml":
        lines = texts[name].splitlines()
        at = rng.randrange(len(lines))
        lines[at] = f"{lines[at].partition(' = ')[0]} = {rng.choice(TOML)}"
        content = "\n".join(lines).encode()
    else:
        rows = [row.split(",") for row in texts[name].splitlines()]
        for _ in range(rng.choice((1, 1, 4))):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice(CELLS)
        content = "\n".join(",".join(row) for row in rows).encode()
    for file, text in texts.items():
        (place / file).write_bytes(content if file == name else text.encode())
    return ["read-party", str(place / "me.toml")]
