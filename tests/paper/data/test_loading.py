"""Names, search order, labels, and the published counts where the files are present."""

from __future__ import annotations

import bz2
import hashlib
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from ccmac.errors import InputError
from ccmac.paper import data
from ccmac.paper.data import RECORDS, files
from ccmac.paper.data.registry import KnownSet

TOY_TEXT = b"1 1:1 3:1\n2 2:1\n2 \n"
TOY = KnownSet(
    "toy",
    rows=3,
    features=4,
    remote="toy",
    title="toy",
    labels=(1.0, 2.0),
    sha256=hashlib.sha256(TOY_TEXT).hexdigest(),
    aliases=("plaything",),
)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty $CCMAC_DATA and an empty cache; the set ``toy`` is known; no network."""
    named = tmp_path / "named"
    cache = tmp_path / "ccmac"
    named.mkdir()
    cache.mkdir()
    monkeypatch.setenv(files.VARIABLE, str(named))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda app: tmp_path / app)
    monkeypatch.setitem(RECORDS, "toy", TOY)

    def offline(record: KnownSet, directory: Path) -> Path:
        raise InputError(f"download of {record.remote} to {directory}")

    monkeypatch.setattr("ccmac.paper.data.loading.fetch", offline)
    return named, cache


def test_labels_become_signs_and_rows_are_kept(folders: tuple[Path, Path]) -> None:
    (folders[0] / "toy").write_bytes(TOY_TEXT)
    toy = data.load("toy")
    np.testing.assert_array_equal(toy.y, [-1, 1, 1])
    np.testing.assert_array_equal(toy.X.toarray(), [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert (toy.name, toy.source) == ("toy", "libsvm")
    assert repr(toy) == "Dataset('toy', 3 rows, 4 features, 3 nonzeros, libsvm)"


def test_the_named_directory_comes_before_the_cache(folders: tuple[Path, Path]) -> None:
    named, cache = folders
    with pytest.raises(InputError, match=f"download of toy to {cache}"):
        data.locate("toy")
    (cache / "toy.xz").write_bytes(lzma.compress(TOY_TEXT))
    assert data.locate("toy") == cache / "toy.xz"
    assert data.load("plaything").X.nnz == 3
    (named / "plaything.bz2").write_bytes(bz2.compress(TOY_TEXT))
    assert data.locate("toy") == named / "plaything.bz2"
    (named / "toy.txt").write_bytes(TOY_TEXT)
    assert data.locate("toy") == named / "toy.txt"
    assert sorted(p.name for p in named.iterdir()) == ["plaything.bz2", "toy.txt"]


def test_a_file_that_is_not_the_set_is_refused(folders: tuple[Path, Path]) -> None:
    (folders[0] / "toy").write_bytes(TOY_TEXT.replace(b"3:1", b"3:2"))
    with pytest.raises(InputError, match=r"toy is not toy \(sha256 .*replace or remove"):
        data.load("toy")


def test_without_a_checksum_rows_and_labels_are_checked(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECORDS, "toy", replace(TOY, sha256=None))
    path = folders[0] / "toy"
    path.write_bytes(TOY_TEXT)
    assert data.load("toy").X.shape == (3, 4)
    path.write_bytes(TOY_TEXT + b"1 1:1\n")
    with pytest.raises(InputError, match="has 4 rows, toy has 3"):
        data.load("toy")
    path.write_bytes(TOY_TEXT.replace(b"2 2:1", b"3 2:1"))
    with pytest.raises(InputError, match="line 2: label 3 is neither 1 nor 2"):
        data.load("toy")


def test_fallback_stays_off_the_network_and_tells_its_name(folders: tuple[Path, Path]) -> None:
    stand_in = data.load("a1a", fallback=True)
    assert (stand_in.name, stand_in.source) == ("a1a-like", "generated")
    with pytest.raises(InputError, match="download of a1a"):
        data.load("a1a")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'a7a': choose one of a1a, .*rcv1_train.binary"):
        data.load("a7a")
    assert data.resolve("rcv1").name == "rcv1_train.binary"


def test_a_named_directory_that_is_none_is_refused(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(files.VARIABLE, str(folders[0] / "nowhere"))
    with pytest.raises(InputError, match="is not a directory: create it or unset"):
        data.load("toy")


def test_status_and_verify(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = folders[0] / "toy"
    assert data.status(TOY).state == data.verify(TOY).state == "absent"
    path.write_bytes(TOY_TEXT + b"\n")
    seen = data.status(TOY)
    assert (seen.state, seen.path, seen.size) == ("present", path, len(TOY_TEXT) + 1)
    assert data.verify(TOY).state == "verified"
    path.write_bytes(b"1 1:1\n")
    assert data.verify(TOY).state == "bad"

    unknown = replace(TOY, sha256=None)
    path.write_bytes(TOY_TEXT)
    told = data.verify(unknown)
    assert told.state == "unverified"
    assert "no checksum is on record" in told.detail
    path.write_bytes(b"1 1:1\n")
    assert data.verify(unknown).state == "bad"


@pytest.mark.parametrize("name", [n for n, r in RECORDS.items() if r.sha256])
def test_the_published_counts(name: str) -> None:
    record = RECORDS[name]
    if data.status(record).path is None:
        pytest.skip(f"{name} is not on this machine: set CCMAC_DATA to check the real file")
    assert data.verify(record).state == "verified"
    found = data.load(name)
    assert found.X.shape == (record.rows, record.features)
    assert found.X.nnz == record.nnz
    assert np.all(found.X.data == 1.0)
    assert (np.sum(found.y == -1), np.sum(found.y == 1)) == record.counts
    assert found.X.has_canonical_format
    assert found.X.indices.dtype == found.X.indptr.dtype == np.int32
