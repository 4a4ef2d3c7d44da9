"""No ordinary file wherever one is named, and every option of every command with wrong types."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from random import Random
from typing import Any

import typer

from ccmac.cli.commands import application
from fuzz.commands import NUMBERS, TEXTS
from fuzz.targets import LIMITED, Words
from fuzz.templates import Templates

DEVICES = ("/dev/full", "/dev/zero", "/dev/random", "/dev/tty", "/proc/kmsg")


def nothing_there(rng: Random, path: Path) -> Path:
    """Something at ``path`` that is no ordinary file."""
    kind = rng.randrange(10)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(path)
    elif kind == 3:
        other = path.with_name("loop")
        other.symlink_to(path)
        path.symlink_to(other)
    elif kind == 4:
        path.symlink_to(rng.choice(DEVICES))
    elif kind == 5:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))
    elif kind == 6:
        path.write_bytes(b"")
    elif kind == 7:
        path.symlink_to("nowhere/at/all")
    elif kind == 8:
        path.write_bytes(b"\n" * rng.choice((1, 10**6)))
    else:
        path.symlink_to("/proc/self/environ")
    return path


def odd_file(rng: Random, place: Path, made: Templates) -> Words:
    """No ordinary file wherever a command names one."""
    dispatch = str(made.root / "dispatch")
    odd = str(nothing_there(rng, place / "odd"))
    base = ["solve", dispatch, *LIMITED]
    kind = rng.randrange(12)
    if kind < 4:
        option = ("--network", "--warm-start", "--checkpoint", "--out")[kind]
        return [*base, option, odd]
    if kind < 7:
        name = ("out", "checkpoint", "records")[kind - 4]
        folder = made.copy(name, place)
        path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
        path.unlink()
        nothing_there(rng, path)
        if name == "records":
            return ["suite", rng.choice(("status", "table", "verify")), str(folder)]
        option = "--warm-start" if name == "out" else "--checkpoint"
        method = ["--method", "cross-apapc"] if name == "checkpoint" else []
        return [*base, *method, "--network", "ring", option, str(folder)]
    return (
        ["solve", odd],
        ["suite", "run", odd, "--out", str(place / "runs"), "--only", "none"],
        ["agent", odd],
        ["vfl", "party", odd],
        ["keys", odd, "--agents", "2"],
    )[kind - 7]


def wrong(rng: Random, place: Path, parameter: Any) -> str:
    """A value of another type than the parameter's."""
    kind = getattr(parameter, "bare_type", None) or getattr(parameter, "type", str)
    if any(word in str(kind).lower() for word in ("path", "file", "directory")):
        return str(nothing_there(rng, place / f"p{rng.randrange(10**9)}"))
    return rng.choice(NUMBERS if rng.random() < 0.5 else TEXTS)


def words(rng: Random, place: Path, made: Templates) -> Words:
    """Any command of the program with its own options, of other types, too few or too many."""
    command = typer.main.get_command(application())
    line = []
    while getattr(command, "commands", None):
        name = rng.choice(sorted(set(command.commands) - {"demo", "optimality"}))
        command = command.commands[name]
        line = [*line, name]
    for parameter in command.params:
        argument = parameter.param_type_name == "argument"
        if argument and rng.random() < 0.9:
            sound = rng.random() < 0.3 and line[0] in ("solve", "plan", "geometry")
            line.append(str(made.root / "dispatch") if sound else wrong(rng, place, parameter))
        elif not argument and rng.random() < 0.25 and "--plugin" not in parameter.opts:
            flag = getattr(parameter, "is_flag", False)
            line += [rng.choice(parameter.opts)] + ([] if flag else [wrong(rng, place, parameter)])
    if rng.random() < 0.1:
        line += [rng.choice(("--no-such", "-", "--", "extra", "-x9"))]
    limits = ["--max-iterations", "9", "--max-seconds", "4"] if line[0] == "solve" else []
    return [*line, *(w for k, w in enumerate(limits) if limits[k - k % 2] not in line)]
