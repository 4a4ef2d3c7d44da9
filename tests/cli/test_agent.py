"""``ccmac agent`` and ``ccmac keys``: owners as processes of their own, on the loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import CcmacError, InputError
from ccmac.owners.session import Owner
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.runtime import wire
from ccmac.runtime.tls import certificates, fingerprint
from ccmac.storage.keys import make_keys
from ccmac.storage.owner import Public, read_mine, read_public
from owners import N, at_once, by_mail, expired, finish, for_servers, later, replaced, start, trial

pytest.importorskip("cryptography")
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def problem() -> ccmac.Problem:
    return random_quadratic(9, n=N, q=3, m=2, kappa_f=30.0)


@pytest.mark.parametrize("kill", range(int(os.environ.get("CCMAC_OWNER_KILLS", "1"))))
def test_a_killed_owner_ends_the_run_and_all_continue_to_the_same_bits(
    kill: int, tmp_path: Path, problem: ccmac.Problem
) -> None:
    """kill -9 of agent 1 some time after its first checkpoint; then all are started again."""
    folder = trial(tmp_path / "trial", problem)
    jobs = [start(folder, i) for i in (2, 0, 1)]
    deadline = time.monotonic() + 100
    while not list((folder / "state-1").glob("state-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05 * kill)
    os.kill(jobs[2].pid, signal.SIGKILL)
    ended = finish(jobs)
    if ended[0][0]:  # it may have been done already
        assert [code for code, _, _ in ended] == [1, 1, -signal.SIGKILL], ended
        for _, _, errors in ended[:2]:
            assert "agent 1: has not been heard of for 2 s" in errors
    again = finish([start(folder, i) for i in range(N)])
    assert [code for code, _, _ in again] == [0] * N, again
    alone = ccmac.InProcess(ccmac.Network.path(N), fused=False)
    whole = ccmac.solve(problem, method="cross-apapc", tol=1e-10, runtime=alone)
    for i in range(N):
        [kept] = (folder / f"state-{i}").glob("state-*.npz")
        with np.load(kept) as arrays:  # a digest of the owner's data, of nobody else's
            assert arrays["shapes/depends on"].tolist() == [[12]]
        told = json.loads(again[i][1])
        assert (told["agent"], told["status"]) == (i, "optimal")
        assert told["ledger"] == json.loads(json.dumps(whole.ledger.as_dict()))
        with np.load(folder / f"out-{i}" / f"solution-{i:04d}-{i:04d}.npz") as found:
            assert sorted(found) == sorted(
                ["z", "coupled", f"x{i}", f"local{i}", f"shared{i}", f"consensus{i}"]
            )
            assert found[f"x{i}"].tobytes() == whole.x[i].tobytes()
            assert found["z"].tobytes() == whole.z.tobytes()


# -- files -----------------------------------------------------------------------------------------
def test_an_agent_saved_is_the_agent_loaded(tmp_path: Path, problem: ccmac.Problem) -> None:
    agent = problem.agents[1]
    agent.save(tmp_path / "agent")
    again = ccmac.Agent.load(tmp_path / "agent")
    for name in "ABbCcDe":
        assert np.array_equal(getattr(again, name), getattr(agent, name))
    with pytest.raises(InputError, match="not empty"):
        agent.save(tmp_path / "agent")
    (tmp_path / "agent" / "agent.npz").write_bytes(b"something else")
    with pytest.raises(InputError, match="checksum"):
        ccmac.Agent.load(tmp_path / "agent")
    with pytest.raises(InputError, match=r"Agent\.save"):
        ccmac.Agent.load(tmp_path)


def test_keys_are_their_owners_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", str(tmp_path), "--agents", "1", "--name", "bank.example"]) == 0
    written = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert {"authority.key", "agent-0.crt", "bank.example.key"} <= set(written)
    for name in ("authority.key", "agent-0.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert main(["keys", str(tmp_path), "--agents", "1"]) == 2
    assert "is there already" in capsys.readouterr().err


def test_the_public_file_is_compared_by_what_it_says(tmp_path: Path) -> None:
    one = tmp_path / "one.toml"
    other = tmp_path / "other.toml"
    one.write_text("agents = 2\nq = 1\nm = 1\ntol = 1e-6\n")
    other.write_text("# the same\nm = 1\nq = 1\nagents = 2\n")
    assert read_public(one).digest() == read_public(other).digest()
    assert Public(2, 1, 1, tol=1e-7).digest() != read_public(one).digest()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("agent = 1", "agent = 7", "agent 7: index outside 0..2"),
        ('out = "out-1"', "", "out"),
        ("patience = 2.0", "patience = -1.0", "patience: Expected `float` > 0.0"),
        ('0 = "127', '0 = {dial = "sideways"} # "127', "Invalid enum value 'sideways'"),
        ('0 = "127', '0 = {dial = "relay"} # "127', "is no address"),
        ('checkpoint = "state-1"', 'checkpoint = "public.toml"', "public.toml"),
        ("keys/authority.crt", "keys/authority.key", "is no certificate (PEM)"),
        ("keys/agent-1.crt", "keys/agent-7.crt", "agent-7.crt"),
        ("agents = 3", "agents = 0", "agents: Expected `int` >= 1"),
        ("tol = 1e-10", "tol = 0.0", "tol: Expected `float` > 0.0"),
        ('network = "path"', 'network = "pth"', "pth"),
        (
            "q = 3",
            'q = 3\nabsent = ["west"]',
            "absent: 'west' is none of agent-0, agent-1, agent-2",
        ),
        ("q = 3", 'q = 3\nabsent = ["agent-1"]', "agent 1 is absent by the public file"),
        ("q = 3", 'q = 3\nnames = ["a", "b"]', "names: give 3 different names"),
        ("q = 3", 'q = 3\nnames = ["a", "b", "c"]', "is for agent-1, but the public file calls"),
    ],
)
def test_bad_settings_are_one_line(
    tmp_path: Path,
    problem: ccmac.Problem,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    says: str,
) -> None:
    folder = trial(tmp_path / "trial", problem)
    file = folder / "me-1.toml"
    [wrong] = [f for f in (file, folder / "public.toml") if old in f.read_text()]
    wrong.write_text(wrong.read_text().replace(old, new, 1))
    capsys.readouterr()
    assert main(["agent", str(file)]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


# -- what people get wrong -------------------------------------------------------------------------
def edit(name: str, old: str, new: str) -> Change:
    """A file of settings with something else in it."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def certificate(changed: Callable[[Any], Any], name: str = "agent-1") -> Change:
    """The certificate of agent 1 is another one of the same authority."""
    return lambda folder: replaced(folder / "keys", name, changed, "agent-1")


def an_authority_of_its_own(folder: Path) -> None:
    make_keys(folder / "own", ["agent-1"])
    text = (folder / "me-1.toml").read_text()
    (folder / "me-1.toml").write_text(text.replace("keys/", "own/"))


def revoked(by: int) -> Change:
    """Agent 1's certificate, in the public file of one owner."""

    def change(folder: Path) -> None:
        print_ = fingerprint(certificates(str(folder / "keys" / "agent-1.crt"))[0])
        text = (folder / "public.toml").read_text()
        (folder / "other.toml").write_text(f'revoked = ["{print_}"]\n{text}')
        edit(f"me-{by}.toml", "public.toml", "other.toml")(folder)

    return change


def another_public_file(folder: Path) -> None:
    text = (folder / "public.toml").read_text()
    (folder / "other.toml").write_text(text.replace("1e-10", "1e-9"))
    edit("me-1.toml", "public.toml", "other.toml")(folder)


def both_dial(folder: Path) -> None:
    place = read_mine(folder / "me-1.toml").listen
    edit("me-0.toml", f'1 = "{place}"', f'1 = {{dial = "out", address = "{place}"}}')(folder)


def same(folder: Path) -> None:
    """No file is changed."""


MISTAKES: dict[str, tuple[Change, dict[int, str]]] = {  # who is told what; 1 made the mistake
    "address": (edit("me-1.toml", '0 = "127.0.0.1:', '0 = "127.0.0.1/'), {1: "is no address"}),
    "port in use": (same, {1: "cannot listen there (Address already in use"}),
    "key": (lambda f: (f / "keys/agent-1.key").chmod(0o644), {1: "do: chmod 600"}),
    "expired": (certificate(expired), {1: "expired on"}),
    "clock": (certificate(later), {1: "is the clock right"}),
    "name": (certificate(lambda c: c, "agent-7"), {1: "is for agent-7, but the public file"}),
    "mail": (certificate(by_mail), {1: "is for nobody, but the public file"}),
    "usage": (certificate(for_servers), {1: "is not for clients and servers"}),
    "authority": (edit("me-1.toml", "authority.crt", "agent-0.crt"), {1: "is not signed by"}),
    "revoked": (revoked(1), {1: "is revoked by the public file"}),
    "another's key": (edit("me-1.toml", "agent-1.key", "agent-0.key"), {1: "cannot be used"}),
    "misspelled": (edit("me-1.toml", "every", "evry"), {1: "evry"}),
    "no folder": (edit("me-1.toml", '"agent-1"', '"agent"'), {1: "not found; give a directory"}),
    "method": (edit("public.toml", "cross-apapc", "cross-apap"), {1: "cross-apap"}),
    "sizes": (edit("public.toml", "m = 2", "m = 3"), {1: "has 2 rows but the coupled"}),
    "stranger": (edit("me-1.toml", '0 = "127', '5 = "127'), {1: "'5' is no neighbor of agent 1"}),
    "no listen": (edit("me-1.toml", "listen", "# listen"), {1: "listen is missing"}),
    "nobody there": (
        edit("me-1.toml", '0 = "127.0.0.1:', '0 = "127.0.0.2:'),
        {0: "agent 1: did not come", 1: "did not come for 2 s"},  # neither do 0 and 2 to 1
    ),
    "version": (same, {0: "1.2.3; install one of them", 1: "1.2.3; install one of them"}),
    "public file": (another_public_file, {0: "differ in the public", 1: "differ in the public"}),
    "both dial": (both_dial, {0: "one of the two needs dial", 1: "one of the two needs dial"}),
    "revoked there": (revoked(0), {0: "shows a certificate that is revoked", 1: "refused us"}),
    "two authorities": (
        an_authority_of_its_own,
        {0: "hung up in the handshake; does it", 1: "its certificate is refused"},
    ),
}
assert len(MISTAKES) >= 20


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line_for_everybody_who_must_know(
    tmp_path: Path,
    problem: ccmac.Problem,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mistake: str,
) -> None:
    folder = trial(tmp_path / "trial", problem, 1.0)
    for i in range(2):
        file = folder / f"me-{i}.toml"
        file.write_text(f"wait = 1.5\n{file.read_text()}")
    change, says = MISTAKES[mistake]
    change(folder)
    if 0 not in says:  # found before anybody is dialled
        host, _, port = str(read_mine(folder / "me-0.toml").listen).rpartition(":")
        if mistake == "port in use":
            port = str(read_mine(folder / "me-1.toml").listen).rpartition(":")[2]
        capsys.readouterr()
        with socket.create_server((host, int(port))):
            assert main(["agent", str(folder / "me-1.toml")]) == 2
        told = capsys.readouterr().err
        assert says[1] in told
        assert told.count("\n") == 1
        return
    hello = wire.hello

    def of_another_version(**facts: Any) -> bytes:
        return hello(**(facts | {"version": "1.2.3"} if facts.get("agent") == 1 else facts))

    if mistake == "version":
        monkeypatch.setattr(wire, "hello", of_another_version)
    said: dict[int, list[str]] = {0: [], 1: []}

    def one(i: int) -> None:
        try:
            with Owner.read(folder / f"me-{i}.toml").links() as links:
                links.say = said[i].append
                links.start()
        except CcmacError as error:
            said[i].append(str(error))

    at_once(one, (0, 1))
    for i, words in says.items():
        assert words in " | ".join(said[i]), said
        assert not any("\n" in line for line in said[i])


def test_the_others_go_on_without_one_that_is_gone(
    tmp_path: Path, problem: ccmac.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    """Agent 1 of three, who all know each other, is away; the others start at their last point."""
    folder = trial(tmp_path / "trial", problem, network='"complete"', max_iterations="40")
    ports = [read_mine(folder / f"me-{i}.toml").listen for i in range(N)]
    for i in (0, 2):
        with (folder / f"me-{i}.toml").open("a") as stream:
            stream.write(f'{2 - i} = "{ports[2 - i]}"\n')
    assert [code for code, _, _ in finish([start(folder, i) for i in range(N)])] == [1] * N
    public = folder / "public.toml"
    text = public.read_text().replace("max_iterations = 40\n", "")
    public.write_text(f'{text}absent = ["agent-1"]\n')
    ended = finish([start(folder, i) for i in (0, 2)])
    assert [code for code, _, _ in ended] == [0, 0], ended
    left = ccmac.Problem([problem.agents[0], problem.agents[2]], q=problem.q, m=problem.m)
    exact = solve_kkt(left)
    for k, i in enumerate((0, 2)):
        told = json.loads(ended[k][1])
        assert (told["agent"], told["absent"], told["status"]) == (i, ["agent-1"], "optimal")
        assert "without agent-1" in ended[k][2]
        assert list((folder / f"state-{i}-without-agent-1").glob("state-*.npz"))
        [before] = (folder / f"state-{i}").glob("state-*.npz")
        with np.load(before) as arrays:
            x = arrays["agents/point"][: -problem.q]
        assert 0 < np.linalg.norm(x - exact.x[k]) < 10
        with np.load(folder / f"out-{i}" / f"solution-{k:04d}-{k:04d}.npz") as found:
            np.testing.assert_allclose(found[f"x{k}"], exact.x[k], atol=1e-8)
            np.testing.assert_allclose(found["z"], exact.z, atol=1e-8)
    public.write_text(public.read_text().replace("complete", "path"))
    assert main(["agent", str(folder / "me-0.toml")]) == 2
    assert "without agent-1 the others do not reach each other in path" in capsys.readouterr().err
