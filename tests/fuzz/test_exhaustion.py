"""Small inputs that took all memory or time, and files of others that went with the program's."""

from __future__ import annotations

import bz2
import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.paper.data import read_svmlight, svmlight
from ccmac.paper.instances import dispatch
from ccmac.storage.index import read_slots
from ccmac.storage.located import parse
from ccmac.storage.npz import read_npz
from fuzz.archives import member

Captured = pytest.CaptureFixture[str]


def line(capsys: Captured, *words: object) -> str:
    """What a refused command says."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.count("\n") == 1
    assert len(told.err) < 520
    return told.err


def test_members_that_lie_over_each_other(tmp_path: Path) -> None:
    """Each member holds all that follow it: k members take k times the room of the file."""
    inside = bytes(4096)
    directory = []
    count = 3
    for k in reversed(range(count)):
        name = f"m{k}.npy".encode()
        content = member(np.frombuffer(inside, np.uint8))
        crc = zlib.crc32(content)
        size = len(content)
        sizes = struct.pack("<IIIHH", crc, size, size, len(name), 0)
        inside = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 0, 0, 33) + sizes + name + content
        directory.append((name, sizes, len(inside)))
    entries = b"".join(
        b"PK\x01\x02"
        + struct.pack("<HHHHHH", 20, 20, 0, 0, 0, 33)
        + sizes
        + struct.pack("<HHHII", 0, 0, 0, 0, len(inside) - back)
        + name
        for name, sizes, back in directory
    )
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(entries), len(inside), 0)
    path = tmp_path / "a.npz"
    path.write_bytes(inside + entries + b"PK\x05\x06" + end)
    with path.open("rb") as stream, pytest.raises(ValueError, match=r"over each other|verlap"):
        read_npz(stream)


@pytest.mark.parametrize("key", ["a." * 30 + "a", '"x\\"" . ' * 30 + "a", "'b'.c-d." * 15 + "e"])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{{} = 1}}", "y = [0.5, {{{} = 1}}]"])
def test_keys_of_many_parts(tmp_path: Path, capsys: Captured, key: str, form: str) -> None:
    (tmp_path / "me.toml").write_text(form.format(key))
    assert "more than 20 parts" in line(capsys, "agent", tmp_path / "me.toml")


@pytest.mark.parametrize("text", ["%TAG !a! x\n--- 1", "# a\r%YAML 1.1\n--- 1", "--- 1\n...\n%X y"])
def test_directives(text: str) -> None:
    with pytest.raises(InputError, match=r"^f, line \d: .* begins with %"):
        parse(text, "f")
    assert parse("a: '%b'\nc: 5%\n", "f").plain() == {"a": "%b", "c": "5%"}


def test_more_parties_than_any_network_has(tmp_path: Path, capsys: Captured) -> None:
    parties = ", ".join(f'"p{k}"' for k in range(3000))
    text = f'party = "p0"\nparties = [{parties}]\ntable = "t.csv"\nkey = "id"\nout = "out"\n'
    (tmp_path / "me.toml").write_text(text)
    assert "at most 2,000" in line(capsys, "vfl", "party", tmp_path / "me.toml")


def test_a_text_that_unpacks_without_end(tmp_path: Path) -> None:
    (tmp_path / "t.bz2").write_bytes(bz2.compress(bytes(70 << 20)))
    with pytest.raises(InputError, match="holds more than 67,108,864 bytes"):
        read_svmlight(tmp_path / "t.bz2")


def test_long_texts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b"%d 1:%d %d:2\n" % ((-1) ** k, k, k + 2) for k in range(50)) + b"-1\n"
    whole = [svmlight.parse_svmlight(text, width) for width in (None, 99)]
    monkeypatch.setattr(svmlight, "_PIECE", 40)
    for (X, y), width in zip(whole, (None, 99), strict=True):
        again, labels = svmlight.parse_svmlight(text, width)
        assert (again != X).nnz == 0
        assert again.shape == X.shape
        assert np.array_equal(labels, y)
    with pytest.raises(InputError, match="line 20: the line is empty"):
        svmlight.parse_svmlight(text.replace(b"\n-1 1:19", b"\n\n-1 1:19"))


@pytest.mark.parametrize("spoil", ["pipe", "encrypted", "another", "no certificate", "no key"])
def test_keys_that_are_there(tmp_path: Path, capsys: Captured, spoil: str) -> None:
    """Nothing is waited for, and no key is ever replaced."""
    assert main(["keys", str(tmp_path), "--agents", "1"]) == 0
    key = tmp_path / "authority.key"
    certificate = tmp_path / "authority.crt"
    if spoil == "pipe":
        key.unlink()
        os.mkfifo(key)
    elif spoil == "another":
        shutil.copyfile(tmp_path / "agent-0.key", key)
    elif spoil == "encrypted":
        body = "MIIC" * 16
        kind = "ENCRYPTED PRIVATE KEY"
        key.write_text(f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n")
    else:
        (certificate if spoil == "no certificate" else key).unlink()
    kept = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    assert "authority" in line(capsys, "keys", tmp_path, "--name", "x")
    (tmp_path / "agent-0.crt").unlink()
    assert "agent-0.key: is there" in line(capsys, "keys", tmp_path, "--agents", 1)
    del kept["agent-0.crt"]
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == kept


def test_a_long_path_is_not_repeated(capsys: Captured) -> None:
    assert len(line(capsys, "solve", "a" * 90 + "/b/c" * 900)) < 300


def test_files_of_others_stay(tmp_path: Path, capsys: Captured) -> None:
    """A summary that names somebody else's file, with its checksum, does not make it ours."""
    problem = dispatch(hours=2).problem
    problem.save(tmp_path / "p")
    words = ["solve", str(tmp_path / "p"), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    mine = tmp_path / "out" / "mine.txt"
    index = tmp_path / "out" / "summary.json"
    mine.write_text("mine")
    told = json.loads(index.read_text())
    told["parts"]["mine.txt"] = zlib.crc32(b"mine")
    index.write_text(json.dumps(told))
    assert main(words) == 0
    assert mine.read_text() == "mine"
    (tmp_path / "p" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'notes\.txt'"):
        problem.save(tmp_path / "p", replace=True)
    assert (tmp_path / "p" / "notes.txt").exists()


def test_the_generation_before_counts_where_the_newest_is_damaged(
    tmp_path: Path, capsys: Captured
) -> None:
    """Of an owner, who keeps two; where both are damaged, what is refused has changed nothing."""
    H = np.diag([1.0, 2.0, 3.0])
    rng = np.random.default_rng(0)
    f = ccmac.objectives.Quadratic(H, np.ones(3))
    ccmac.Agent(f, A=rng.standard_normal((2, 2)), B=np.ones((2, 1))).save(tmp_path / "agent")
    assert main(["keys", str(tmp_path), "--agents", "1"]) == 0
    (tmp_path / "public.toml").write_text(
        'agents = 1\nq = 1\nm = 2\nmethod = "cross-apapc"\ntol = 1e-12\nmax_iterations = 7\n'
    )
    files = 'certificate = "agent-0.crt"\nkey = "agent-0.key"\nauthority = "authority.crt"\n'
    (tmp_path / "me.toml").write_text(
        f'public = "public.toml"\nagent = 0\nfolder = "agent"\n{files}'
        'out = "out"\ncheckpoint = "state"\nevery = 2\n'
    )
    assert main(["agent", str(tmp_path / "me.toml")]) == 1
    folder = tmp_path / "state"
    [part] = (tmp_path / "out").glob("solution*.npz")
    whole = part.read_bytes()
    slots = [folder / "state-0.bin", folder / "state-1.bin"]
    generations = read_slots(folder, apart=True)
    assert len(generations) == 2
    newest = slots[generations[max(generations)].slot]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert main(["agent", str(tmp_path / "me.toml")]) == 1
    assert part.read_bytes() == whole
    for slot in slots:
        slot.write_bytes(slot.read_bytes()[:-1])
    kept = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert "nothing was changed" in line(capsys, "agent", tmp_path / "me.toml")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == kept
