"""Load a set by name, or any svmlight file; what is nowhere on this machine is downloaded.

Only sets whose checksum is on record are downloaded, a few megabytes from the LIBSVM site; a file
gets its name when its checksum is right.
"""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.paper.data import files
from ccmac.paper.data.files import LIMIT, VARIABLE
from ccmac.paper.data.lookalike import generate
from ccmac.paper.data.registry import LIKE, Dataset, KnownSet, resolve
from ccmac.paper.data.svmlight import parse_svmlight
from ccmac.storage.files import atomic_path, fresh, locked


def read_svmlight(path: Path, n_features: int | None = None) -> tuple[csr_array[np.float64], Array]:
    """Read a plain, ``.bz2`` or ``.xz`` svmlight file; returns the matrix and the labels."""
    return parse_svmlight(files.read_text(path), n_features, str(path))


def locate(name: str) -> Path:
    """Return the file of a set, downloading it to the user's cache if it is nowhere else."""
    if name.endswith(LIKE):
        raise InputError(
            f"{name} is generated and has no file: leave out {LIKE!r} for the original"
        )
    record = resolve(name)
    return files.find(record) or fetch(record, files.cache_directory())


def load(name: str, *, fallback: bool = False) -> Dataset:
    """Return the set called ``name`` (see :data:`ccmac.paper.data.RECORDS`).

    The file is looked for in ``$CCMAC_DATA``, then in the user's cache, then downloaded. With
    ``fallback`` nothing is downloaded: if the file is not on this machine, the generated look-alike
    is returned, under the look-alike's name. A name ending in ``-like`` is always generated.

    Of the two labels in the file the smaller becomes -1 and the larger +1 (in ``mushrooms``
    1 -> -1, poisonous, and 2 -> +1, edible).
    """
    record = resolve(name)
    if name.endswith(LIKE) or (fallback and files.find(record) is None):
        return generate(record.name)
    return _read(record, locate(name))


def _read(record: KnownSet, path: Path) -> Dataset:
    text = files.read_text(path)
    files.check_digest(record, text, path)
    X, labels = parse_svmlight(text, record.features, str(path))
    files.check_rows(record, X.shape[0], path)
    negative, positive = record.labels
    strange = np.flatnonzero((labels != negative) & (labels != positive))
    if strange.size:
        raise InputError(
            f"{path}, line {strange[0] + 1}: label {labels[strange[0]]:g} is neither "
            f"{negative:g} nor {positive:g}; replace the file by the binary set"
        )
    return Dataset(record.name, X, np.where(labels == positive, 1.0, -1.0), "libsvm")


BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


def fetch(record: KnownSet, directory: Path, *, base_url: str = BASE_URL) -> Path:
    """Download ``record`` into ``directory`` and return the path of the finished file."""
    if record.sha256 is None:
        raise InputError(
            f"{record.name}: no checksum is on record, so it is not downloaded: get the file "
            f"yourself and set {VARIABLE} to its directory, or use a generated look-alike "
            "(fallback=True, or the name with '-like')"
        )
    target = directory / record.remote
    try:
        with fresh(directory):
            directory.mkdir(parents=True, exist_ok=True)
            # Ranks of a cluster often ask together: another may have brought it meanwhile.
            with locked(directory / f"{record.remote}.lock"):
                if not target.exists():
                    _store(record, _download(base_url + record.remote), target)
    except OSError as error:
        raise InputError(
            f"cannot store {record.name} in {directory} ({error.strerror or error}): "
            f"make room there, or set {VARIABLE} to a directory that holds the file"
        ) from None
    return target


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=30.0) as response:
            content = bytes(response.read(LIMIT))
            if response.length:
                raise http.client.IncompleteRead(content, response.length)
            return content
    except (OSError, http.client.HTTPException) as error:
        raise InputError(
            f"cannot download {url} ({error}): try again, set {VARIABLE} "
            "to a directory that holds the file, or use a generated look-alike (fallback=True, or "
            "the name with '-like')"
        ) from None


def _store(record: KnownSet, content: bytes, target: Path) -> None:
    """Under its name only if it decompresses and has the checksum on record."""
    with atomic_path(target) as place:
        place.write_bytes(content)
        try:
            text = files.read_text(place, compression=target.suffix)
            files.check_digest(record, text, place)
        except InputError:
            raise InputError(
                f"the download of {record.name} is not the set on record: try again later, or set "
                f"{VARIABLE} to a directory that holds the file"
            ) from None
