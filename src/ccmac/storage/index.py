"""What a checkpoint's folder says of itself: whose run it is, and what its two slots hold.

    checkpoint.json    the run: number of agents, and what of the manifest never changes
    state-0.bin        a line with the checksum of a head, the head, then arrays of agents
    state-1.bin        the same, of the generation before or after

The head tells generation, iteration, the rest of the manifest, and the lengths and checksums of
all parts: of the arrays behind it, and of the files of other processes in the same slot. The newest
slot whose checksums are right is the one that counts.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ccmac.errors import InputError
from ccmac.texts import MEGABYTE, cut, open_file, read_bytes, shown

INDEX = "checkpoint.json"
FORMAT = "ccmac-checkpoint-5"
BYTES = 256 * MEGABYTE  # of what describes a run; a head has a line for each process
MOST = 2**53  # of what is counted: processes tell it as a float
SLOTS = (0, 1)


class Card(msgspec.Struct, frozen=True):
    """What ``checkpoint.json`` says, whose run it is: written once."""

    format: str
    n: int = 0
    manifest: dict[str, Any] = {}
    crc: int = 0

    def checksum(self) -> int:
        """CRC-32 of everything else."""
        return zlib.crc32(msgspec.json.encode(msgspec.structs.replace(self, crc=0)))


class Part(msgspec.Struct, frozen=True):
    """The arrays of agents ``start .. stop - 1``: their length in bytes and their CRC-32."""

    start: int
    stop: int
    bytes: int
    crc: int


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands before the arrays of a slot; ``run`` is the checksum of the run it belongs to."""

    run: int
    generation: int
    iteration: int
    manifest: dict[str, Any]
    parts: list[Part]


@dataclass(frozen=True)
class Index:
    """One generation: the run, its head, the slot it is in, and where its first part begins."""

    run: Card
    head: Head
    slot: int
    begin: int

    @property
    def manifest(self) -> dict[str, Any]:
        """All of it; a head says nothing of what never changes."""
        return self.head.manifest | self.run.manifest

    @property
    def generation(self) -> int:
        return self.head.generation

    @property
    def iteration(self) -> int:
        return self.head.iteration

    @property
    def parts(self) -> list[Part]:
        return self.head.parts

    def place(self, part: Part) -> tuple[str, int]:
        """(file, offset) of a part: the first one lies behind the head."""
        return (
            (head_file(self.slot), self.begin)
            if part == self.parts[0]
            else (part_file(self.slot, part.start), 0)
        )

    def files(self) -> set[str]:
        """The names of the files that the generation needs."""
        trace = self.manifest.get("trace")
        grown = {str(trace.get("file"))} if isinstance(trace, dict) else set()
        return {self.place(part)[0] for part in self.parts} | grown


def head_file(slot: int) -> str:
    return f"state-{slot}.bin"


def part_file(slot: int, start: int) -> str:
    return f"state-{slot}-{start:05d}.bin"


def encode_head(head: Head) -> bytes:
    """The line before the arrays."""
    text = msgspec.json.encode(head)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def encode_run(n: int, manifest: Mapping[str, Any]) -> tuple[Card, bytes]:
    """(run, content of its file)."""
    run = Card(FORMAT, n, dict(manifest))
    run = msgspec.structs.replace(run, crc=run.checksum())
    return run, msgspec.json.format(msgspec.json.encode(run), indent=1)


def exists(directory: str | Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return os.path.exists(Path(directory) / INDEX)


def read_run(folder: Path) -> Card:
    """Whose checkpoint it is; InputError where there is none, or a damaged one."""
    try:
        with open_file(folder / INDEX) as stream:
            content = read_bytes(stream, BYTES)
        if len(content) > BYTES:
            raise damaged(folder, f"{INDEX} is too large")
        run = msgspec.json.decode(content, type=Card)
    except FileNotFoundError:
        raise InputError(f"{folder} holds no checkpoint ({INDEX} is missing)") from None
    except OSError as error:
        raise InputError(f"checkpoint {folder} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(folder, f"{INDEX}: {cut(str(error))}") from None
    if run.format != FORMAT:
        raise InputError(
            f"{folder / INDEX} has format {shown(run.format)}; this version reads {FORMAT}"
        )
    if run.crc != run.checksum():
        raise damaged(folder, f"the checksum of {INDEX} does not match")
    return run


def read_index(directory: str | Path) -> Index:
    """The newest generation, without its state."""
    return max(read_slots(directory).values(), key=lambda index: index.generation)


def read_slots(directory: str | Path, *, apart: bool = False) -> dict[int, Index]:
    """{generation: index} of the slots that are whole; InputError where none is.

    A process that is ``apart`` keeps its own agents alone, and none before its first save.
    """
    folder = Path(directory)
    found = dict[int, Index]()
    why = list[str]()
    run = read_run(folder)
    for slot in SLOTS:
        try:
            index = _read_slot(folder, slot, run, apart)
            found[index.generation] = index
        except FileNotFoundError as error:
            why.append(f"{head_file(slot)}: {error.strerror}")
        except OSError as error:
            why.insert(0, f"{head_file(slot)}: {error.strerror}")
        except ValueError as error:
            why.insert(0, f"{head_file(slot)} {error}")
    if not found:
        raise damaged(folder, why[0])
    return found


def _read_slot(folder: Path, slot: int, run: Card, apart: bool) -> Index:
    """The head of a slot whose own arrays are whole; ValueError or OSError otherwise."""
    with open_file(folder / head_file(slot)) as stream:
        line = stream.readline(BYTES)
        head = _decode_head(line)
        if head.run != run.crc:
            raise ValueError("belongs to another run")
        _check(head, run.n, apart)
        crc = 0
        left = head.parts[0].bytes
        for piece in _pieces(stream, left):
            crc = zlib.crc32(piece, crc)
            left = left - len(piece)
    if left:
        raise ValueError(f"has fewer bytes than {shown(head.parts[0].bytes)}")
    if crc != head.parts[0].crc:
        raise ValueError("has another checksum than its head says")
    return Index(run, head, slot, len(line))


def _pieces(stream: Any, count: int) -> Iterator[bytes]:
    while count > 0 and (piece := stream.read(min(count, MEGABYTE))):
        count -= len(piece)
        yield piece


def _decode_head(line: bytes) -> Head:
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text) or not line.endswith(b"\n"):
        raise ValueError("has a head whose checksum does not match")
    try:
        return msgspec.json.decode(text, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"has a head of another kind: {cut(str(error))}") from None


def _check(head: Head, n: int, apart: bool) -> None:
    """Counts that a run can reach, and agents ``0 .. n - 1`` once each (some, where ``apart``)."""
    if not all(0 <= count < MOST for count in (head.iteration, head.generation)):
        raise ValueError("counts beyond what a run can reach")
    spans = [(part.start, part.stop) for part in head.parts]
    whole = [0, *(stop for _, stop in spans)] == [*(start for start, _ in spans), n]
    alone = apart and len(spans) == 1 and 0 <= spans[0][0] <= spans[0][1] <= n
    if not spans or not (whole or alone):
        raise ValueError(f"does not list agents 0..{shown(n - 1)} once each")


def damaged(folder: Path, what: str) -> InputError:
    return InputError(
        f"checkpoint {folder} is damaged: {what}; start afresh in another directory "
        "(nothing was changed)"
    )
