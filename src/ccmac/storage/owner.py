"""An owner's files: its agent in a folder, its own settings, and what all owners have alike.

DIR/agent.yaml, DIR/agent.npz   one agent (``Agent.save``)
public.toml                     sizes, network, method, tolerance, names: the same everywhere
me.toml                         who I am, my agent's folder, my neighbors, my certificate
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.problem import Agent, Problem
from ccmac.problem.base import clean_agent
from ccmac.runtime.wire import Address, Relayed
from ccmac.storage.agents import encode_agent, read_agent
from ccmac.storage.files import atomic_directory
from ccmac.storage.located import read_yaml
from ccmac.storage.npz import write_npz
from ccmac.texts import MEGABYTE, read_text, shown, unfit

FILE_NAME = "agent.yaml"
ARRAYS: Literal["agent.npz"] = "agent.npz"
BYTES = MEGABYTE  # of settings, with a name for each of some ten thousand rows
AGENTS = 2000
COMMON = ("q", "m", "sense", "z_lower", "z_upper", "row_names", "z_names")
DAYS = 90  # that a certificate is good for
Size = Annotated[int, msgspec.Meta(ge=0, le=10**8)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
T = TypeVar("T")


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``agent.yaml``: version 2 has cones."""

    format: Literal["ccmac-agent"]
    version: Literal[1, 2]
    file: Literal["agent.npz"]
    sha256: str


class Public(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``public.toml``: what belongs to the problem and not to one agent."""

    agents: Annotated[int, msgspec.Meta(ge=1, le=AGENTS)]
    q: Size
    m: Size
    network: str = "complete"
    method: str = "auto"
    tol: Positive = 1e-6
    averaging: str = "auto"
    seed: int = 0
    max_iterations: int | None = None
    names: list[str] = []
    revoked: list[str] = []
    absent: list[str] = []
    sense: str | list[str] | None = None
    z_lower: float | list[float] | None = None
    z_upper: float | list[float] | None = None
    row_names: list[str] | None = None
    z_names: list[str] | None = None
    options: dict[str, str | int | float | bool] = {}

    def certificate_name(self, agent: int) -> str:
        """What an agent's certificate says."""
        return self.names[agent] if self.names else f"agent-{agent}"

    def problem(self, i: int, agent: Agent) -> Problem:
        """The whole problem, of which agent ``i`` alone is here, by its name in this file."""
        if agent.name is None and self.names:
            agent = replace(agent, name=self.names[i])
        common: Any = {name: getattr(self, name) for name in COMMON}
        return Problem({i: agent}, n=self.agents, **common)

    def digest(self) -> str:
        """The same for all whose files say the same, however they are laid out.

        Each owner may revoke certificates at any time.
        """
        return short(repr(msgspec.to_builtins(self) | {"revoked": []}).encode())


class Neighbor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a neighbor is reached: we dial it (out), it dials us (in), or both dial a relay."""

    dial: Literal["out", "in", "relay"]
    address: str = ""


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an owner reaches its neighbors; paths are relative to the file."""

    certificate: str
    key: str
    authority: str
    listen: str | None = None
    neighbors: dict[str, str | Neighbor] = {}
    patience: Positive = 60.0
    wait: Positive = 600.0


class Mine(Link, frozen=True, kw_only=True):
    """``me.toml``: paths are relative to the file."""

    public: str
    agent: int
    out: str
    folder: str | None = None
    python: str | None = None
    checkpoint: str | None = None
    every: Annotated[int, msgspec.Meta(gt=0)] = 50
    max_seconds: float | None = None


def save_agent(agent: Agent, directory: Path, *, replace: bool = False) -> None:
    """Write one agent; the directory appears complete or not at all."""
    arrays = encode_agent(0, clean_agent(0, agent))
    with atomic_directory(directory, replace=r"agent\.(yaml|npz)" if replace else None) as target:
        sha256 = write_npz(target / ARRAYS, arrays)
        saved = Saved("ccmac-agent", 1 if agent.cones is None else 2, ARRAYS, sha256)
        text = yaml.safe_dump(msgspec.to_builtins(saved), sort_keys=False)
        (target / FILE_NAME).write_text(text, encoding="utf-8")


def load_agent(directory: Path) -> Agent:
    """Read a directory written by :func:`save_agent`."""
    saved = read_yaml(directory / FILE_NAME, Saved, "Agent.save", BYTES)
    return read_agent(f"of {directory}", directory / saved.file, saved.sha256)


def read_public(path: Path) -> Public:
    """``public.toml``, checked."""
    return checked_public(path, read_toml(path, Public))


def checked_public(path: Path, public: Public) -> Public:
    """Names that fit."""
    if public.names and len({*public.names}) != public.agents:
        raise InputError(f"{path}: names: give {public.agents} different names, one for each agent")
    everybody = [public.certificate_name(i) for i in range(public.agents)]
    for name in public.absent:
        if name not in everybody:
            raise InputError(f"{path}: absent: {shown(name)} is none of {', '.join(everybody)}")
    return public


def read_mine(path: Path) -> Mine:
    """``me.toml``, checked."""
    mine = read_toml(path, Mine)
    if (mine.folder is None) == (mine.python is None):
        raise InputError(
            f"{path}: give either folder (written by Agent.save) or python (your own file that "
            "defines agent)"
        )
    return mine


def neighbors_of(
    path: Path, mine: Mine, public: Public, network: Network
) -> dict[int, tuple[str, Address | Relayed | None]]:
    """{neighbor: (name in its certificate, where to dial it; None: it dials us)}.

    Of two neighbors the one with the larger number dials, unless they say otherwise.
    """
    if not 0 <= mine.agent < public.agents:
        raise InputError(f"{path}: agent = {mine.agent} is none of 0..{public.agents - 1}")
    near = {str(i): int(i) for i in network.neighbors(mine.agent)}
    strays = [name for name in mine.neighbors if name not in near]
    if strays:
        raise InputError(
            f"{path}: neighbors: {shown(strays[0])} is no neighbor of agent {mine.agent} in "
            f"{network.name}; those are {', '.join(near)}"
        )
    found: dict[int, tuple[str, Address | Relayed | None]] = {}
    for name, i in near.items():
        said = mine.neighbors.get(name, Neighbor("in"))
        if i < mine.agent and name not in mine.neighbors:
            raise InputError(f"{path}: neighbors: the address of agent {i} is missing")
        if isinstance(said, str):
            said = Neighbor("out" if i < mine.agent else "in", said)
        where = None if said.dial == "in" else address(path, said.address)
        if where is not None and said.dial == "relay":
            found[i] = (public.certificate_name(i), Relayed(*where))
        else:
            found[i] = (public.certificate_name(i), where)
    if mine.listen is None and any(where is None for _, where in found.values()):
        raise InputError(f"{path}: listen is missing: a neighbor dials us; or meet at a relay")
    return found


def address(path: Path, text: str) -> Address:
    """``host:port``."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise InputError(f"{path}: {shown(text)} is no address, such as host.example:7001")
    return host.strip("[]"), int(port)


def short(content: bytes) -> str:
    """A digest of what owners compare and need not see."""
    return hashlib.sha256(content).hexdigest()


def read_toml(path: Path, kind: type[T], where: str = "") -> T:
    """A file of settings, of the types that ``kind`` has; ``where`` says what helps if it is not
    there.
    """
    try:
        return msgspec.toml.decode(read_text(path, str(path), BYTES), type=kind)
    except FileNotFoundError:
        raise InputError(f"{path}: not found{where}") from None
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    except ValueError as error:  # of TOML, of its numbers, of what they mean
        raise InputError(f"{path}: {unfit(error)}") from None
