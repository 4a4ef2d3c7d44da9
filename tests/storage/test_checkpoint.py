"""Checkpoints: complete or absent, readable on any split, refused when foreign or damaged."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.storage import checkpoint
from ccmac.storage.index import FORMAT

if TYPE_CHECKING:
    from launcher import Launcher

PROGRAM = Path(__file__).parent / "programs" / "iterating.py"
MANIFEST = {"problem": "abc", "version": "1", "method": "m", "ledger": {"solve": {"rounds": 3}}}


@pytest.fixture(scope="module")
def iterating() -> Any:
    spec = importlib.util.spec_from_file_location("iterating", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(
    folder: Path, iteration: int = 4, manifest: dict[str, Any] = MANIFEST
) -> list[np.ndarray]:
    runtime = InProcess(Network.ring(4), fused=False)
    arrays = [np.arange(k, dtype=np.float64) * np.pi for k in range(4)]
    counts = [np.array(k) for k in range(4)]
    fixed = {key: manifest[key] for key in checkpoint.IDENTITY}
    checkpoint.save(
        runtime,
        checkpoint.Store(folder, 4, fixed),
        iteration,
        {key: value for key, value in manifest.items() if key not in fixed},
        agents={"x": arrays, "count": counts},
        replicated={"step": np.array(0.1)},
    )
    return arrays


def snapshot(folder: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()}


@given(start=st.integers(0, 3), length=st.integers(1, 4))
def test_any_range_of_agents_comes_back(
    tmp_path_factory: pytest.TempPathFactory, start: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("state")
    arrays = write(folder)
    owned = range(start, min(4, start + length))
    saved = checkpoint.load(folder, owned, {"problem": "abc", "method": "m"})
    assert saved.iteration == 4
    assert saved.manifest == MANIFEST
    assert saved.replicated["step"] == 0.1
    assert [int(c) for c in saved.agents["count"]] == list(owned)
    for agent, array in zip(owned, saved.agents["x"], strict=True):
        assert array.dtype == np.float64
        assert np.array_equal(array, arrays[agent])


def test_a_new_checkpoint_replaces_the_old_one(tmp_path: Path) -> None:
    write(tmp_path, 4)
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, 9)
    assert checkpoint.load(tmp_path, range(4)).iteration == 9
    assert sorted(snapshot(tmp_path)) == [
        "checkpoint.json",
        "notes.txt",
        "state-0.bin",
        "state-1.bin",
    ]


def test_a_crash_while_saving_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = write(tmp_path, 4)

    def full_disk(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "flushed_write", full_disk)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, 9)
    saved = checkpoint.load(tmp_path, range(4))
    assert saved.iteration == 4
    assert np.array_equal(saved.agents["x"][3], arrays[3])
    monkeypatch.undo()
    write(tmp_path, 9)  # the leftovers are no obstacle
    assert checkpoint.load(tmp_path, range(4)).iteration == 9


@pytest.mark.parametrize("key", ["problem", "version"])
def test_a_foreign_checkpoint_is_refused_and_kept(tmp_path: Path, key: str) -> None:
    write(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match=f"written with {key} .* this run has 'other'"):
        checkpoint.load(tmp_path, range(4), {key: "other"})
    with pytest.raises(InputError, match=f"written with {key} .* this run has 'other'"):
        write(tmp_path, 9, {**MANIFEST, key: "other"})
    assert snapshot(tmp_path) == before


def damage_state(folder: Path, change: Any) -> None:
    file = next(folder.glob("state-*.bin"))
    file.write_bytes(change(file.read_bytes()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: damage_state(d, lambda b: b[:-7]), "fewer bytes than"),
        (lambda d: damage_state(d, lambda b: b[:90] + b"\x01" + b[91:]), "head whose checksum"),
        (lambda d: damage_state(d, lambda b: b[:-90] + b"\x01" + b[-89:]), "another checksum"),
        (lambda d: next(d.glob("state-*.bin")).unlink(), "No such file"),
        (lambda d: (d / "checkpoint.json").write_text("{"), "damaged"),
        (lambda d: (d / "checkpoint.json").write_text('{"format": 3}'), "damaged"),
        (lambda d: (d / "checkpoint.json").write_text('{"format": "x"}'), "format 'x'"),
        (lambda d: (d / "checkpoint.json").unlink(), "holds no checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_kept(
    tmp_path: Path, damage: Any, message: str
) -> None:
    write(tmp_path)
    damage(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        checkpoint.load(tmp_path, range(4))
    assert "\n" not in str(caught.value)
    assert snapshot(tmp_path) == before


def test_other_formats_sizes_and_objects_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(InputError, match="holds 4 agents, not agent 5"):
        checkpoint.load(tmp_path, range(3, 6))
    index = tmp_path / "checkpoint.json"
    index.write_text(index.read_text().replace(FORMAT, "ccmac-checkpoint-9"))
    with pytest.raises(InputError, match="format 'ccmac-checkpoint-9'"):
        checkpoint.load(tmp_path, range(4))
    runtime = InProcess(Network.ring(1), fused=False)
    store = checkpoint.Store(tmp_path / "b", 1, {})
    with pytest.raises(ValueError, match="cannot be saved"):
        checkpoint.save(runtime, store, 0, {}, agents={"x": [np.array([None])]}, replicated={})


def test_an_interrupted_run_continues_to_the_same_bits(tmp_path: Path, iterating: Any) -> None:
    whole = iterating.iterate(InProcess(iterating.NETWORK, fused=False), None, 30, 1)
    iterating.iterate(InProcess(iterating.NETWORK, fused=False), tmp_path, 17, 5)
    assert checkpoint.read_index(tmp_path).iteration == 15
    resumed = iterating.iterate(InProcess(iterating.NETWORK, fused=False), tmp_path, 30, 5)
    assert np.array_equal(resumed, whole)


@pytest.mark.mpi
@pytest.mark.parametrize(("killed", "then"), [((2, 0, 0.35), 3), ((3, 2, 0.6), 2)])
def test_killed_and_resumed_on_another_number_of_ranks(
    mpi: Launcher, tmp_path: Path, iterating: Any, killed: tuple[int, int, float], then: int
) -> None:
    ranks, victim, moment = killed
    alone = InProcess(iterating.NETWORK, fused=False)
    whole = iterating.iterate(alone, None, 200, 1)
    job = mpi.start(ranks, str(PROGRAM), str(tmp_path), "200", "3", "0.05")
    assert job.stdout is not None
    roster = [job.stdout.readline() for _ in range(ranks)]
    pid = int(re.search(r"pid (\d+) on ", roster[victim])[1])  # type: ignore[index]
    time.sleep(moment)
    os.kill(pid, signal.SIGKILL)
    assert mpi.finish(job, 30.0).returncode != 0
    if checkpoint.exists(tmp_path):
        index = checkpoint.read_index(tmp_path)
        assert len(index.parts) == ranks
    ended = mpi.run(then, str(PROGRAM), str(tmp_path), "200", "7", "0")
    assert ended.returncode == 0, ended.stderr
    result = np.load(tmp_path / "result.npy", allow_pickle=False)
    assert np.array_equal(result, whole)
    assert ended.stdout.splitlines()[-1] == str(alone.ledger.as_dict())
