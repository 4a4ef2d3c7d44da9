"""Load a set by name, or any svmlight file; what is nowhere on this machine is downloaded.

Downloads from the LIBSVM site are resumable and checked before they get their name. Only sets whose
checksum is on record are downloaded, and only over https, redirections included (plain http is for
a server on this machine).
"""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from scipy.sparse import csr_array

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.paper.data import files
from ccmac.paper.data.files import LIMIT, VARIABLE
from ccmac.paper.data.lookalike import generate
from ccmac.paper.data.registry import LIKE, Dataset, KnownSet, resolve
from ccmac.paper.data.svmlight import parse_svmlight
from ccmac.storage.files import fresh, locked
from ccmac.texts import cut


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
_ATTEMPTS = 4
_PAUSE = 1.0
_TIMEOUT = 30.0
_CHUNK = 1 << 16
_HERE = ("127.0.0.1", "::1", "localhost")


class _Interrupted(Exception):
    """The transfer broke off after it had started; what arrived is kept."""


def fetch(record: KnownSet, directory: Path, *, base_url: str = BASE_URL) -> Path:
    """Download ``record`` into ``directory`` and return the path of the finished file.

    Bytes go to a ``.part`` file. A transfer that breaks off is continued from there (HTTP Range),
    a few times in this call and again in the next one. The decompressed text must have the
    checksum on record; a file that has not is deleted.
    """
    if record.sha256 is None:
        raise InputError(
            f"{record.name}: no checksum is on record, so it is not downloaded: get the file "
            f"yourself and set {VARIABLE} to its directory, or use a generated look-alike "
            "(fallback=True, or the name with '-like')"
        )
    url = base_url + record.remote
    target = directory / record.remote
    part = directory / f"{record.remote}.part"
    try:
        with fresh(directory):
            directory.mkdir(parents=True, exist_ok=True)
            with locked(directory / f"{record.remote}.lock"):
                # Ranks of a cluster often ask together: another may have brought it meanwhile.
                if not target.exists():
                    _transfer(url, part, record.name)
                    _check(record, part)
                    os.replace(part, target)
    except OSError as error:
        raise InputError(
            f"cannot store {record.name} in {directory} ({error.strerror or error}): "
            f"make room there, or set {VARIABLE} to a directory that holds the file"
        ) from None
    return target


def _transfer(url: str, part: Path, name: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _transfer_once(url, part, name)
            return
        except _Interrupted as broken:
            if attempt == _ATTEMPTS:
                raise InputError(
                    f"the download of {url} broke off ({broken}): run again to continue it"
                ) from None
            time.sleep(_PAUSE * attempt)


def _transfer_once(url: str, part: Path, name: str) -> None:
    """Append the missing bytes to ``part``, or start anew if the server cannot continue."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "ccmac", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        _check_secure(url, url)
        opener = urllib.request.build_opener(_Redirects(url))
        response = opener.open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:
                if error.headers.get("Content-Range") == f"bytes */{have}":
                    return
                part.unlink()
                raise _Interrupted("the partial file did not fit the one on the server") from None
            raise _unavailable(url, f"{error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _unavailable(url, str(getattr(error, "reason", error))) from None

    with response:
        start = _range_start(response.headers.get("Content-Range"))
        if response.status == 206 and start != have:
            part.unlink(missing_ok=True)
            raise _Interrupted("the server sent another range than was asked for")
        resumed = response.status == 206
        offset = have if resumed else 0
        total = offset + response.length if response.length is not None else None
        with part.open("ab" if resumed else "wb") as sink:
            _copy(response, sink.write, name, offset, total)
            sink.flush()
            os.fsync(sink.fileno())
    size = part.stat().st_size
    if total is not None and size != total:
        raise _Interrupted(f"{size:,} of {total:,} bytes arrived")


def _copy(
    response: http.client.HTTPResponse,
    write: Callable[[bytes], object],
    name: str,
    offset: int,
    total: int | None,
) -> None:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=offset)
        while True:
            try:
                chunk = response.read(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise _Interrupted(str(error) or type(error).__name__) from None
            if not chunk:
                return
            offset += len(chunk)
            if offset > LIMIT:
                raise InputError(f"the download of {name} goes on after {LIMIT:,} bytes: stopped")
            write(chunk)
            bar.advance(task, len(chunk))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections that stay secure."""

    def __init__(self, url: str) -> None:
        self.url = url

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
    ) -> Any:
        """The next request; refused where it would leave https."""
        _check_secure(self.url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_secure(asked: str, url: str) -> None:
    """https; or plain http from beginning to end on this machine."""
    ends = [urllib.parse.urlsplit(each) for each in (asked, url)]
    here = all(end.scheme == "http" and end.hostname in _HERE for end in ends)
    if not (here or ends[1].scheme == "https"):
        raise _unavailable(asked, f"leads to {cut(url)}, which is not https")


def _range_start(header: str | None) -> int | None:
    match = re.match(r"bytes (\d+)-", header or "")
    return int(match[1]) if match else None


def _unavailable(url: str, reason: str) -> InputError:
    return InputError(
        f"cannot download {url} ({reason}): set {VARIABLE} to a directory that holds the file, "
        "or use a generated look-alike (fallback=True, or the name with '-like')"
    )


def _check(record: KnownSet, part: Path) -> None:
    """Keep ``part`` only if it decompresses and has the checksum on record."""
    try:
        text = files.read_text(part, compression=Path(record.remote).suffix)
        fault = files.digest_fault(record, text)
    except InputError:
        fault = "it does not decompress"
    if fault:
        part.unlink()
        raise InputError(
            f"the download of {record.name} is not the set on record ({fault}) and was deleted: "
            f"try again later, or set {VARIABLE} to a directory that holds the file"
        )
