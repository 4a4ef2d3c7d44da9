"""``ccmac agent`` and ``ccmac keys``: owners as processes of their own, on the loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.storage.owner import Public, read_mine, read_public
from owners import N, finish, start, trial

pytest.importorskip("cryptography")


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
        ('0 = "127', '5 = "127', "'5' is no neighbor of agent 1 in path"),
        ("every = 5", "evry = 5", "evry"),
        ('out = "out-1"', "", "out"),
        ("agent-1.key", "agent-0.key", "cannot be used"),
        ('folder = "agent-1"', 'folder = "agent"', "not found; give a directory"),
        ("patience = 2.0", "patience = -1.0", "patience: Expected `float` > 0.0"),
        ('0 = "127.0.0.1:', '0 = "127.0.0.1/', "is no address, such as host.example:7001"),
        ("listen =", "# listen =", "listen is missing: a neighbor dials us; or meet at a relay"),
        ('0 = "127', '0 = {dial = "sideways"} # "127', "Invalid enum value 'sideways'"),
        ('0 = "127', '0 = {dial = "relay"} # "127', "is no address"),
        ('checkpoint = "state-1"', 'checkpoint = "public.toml"', "public.toml"),
        ("keys/authority.crt", "keys/agent-0.crt", "is not signed by"),
        ("keys/authority.crt", "keys/authority.key", "is no certificate (PEM)"),
        ("keys/agent-1.crt", "keys/agent-7.crt", "agent-7.crt"),
        ("agents = 3", "agents = 0", "agents: Expected `int` >= 1"),
        ("tol = 1e-10", "tol = 0.0", "tol: Expected `float` > 0.0"),
        ('network = "path"', 'network = "pth"', "pth"),
        ("cross-apapc", "cross-apap", "cross-apap"),
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


def test_a_port_in_use_and_a_key_that_others_may_read(
    tmp_path: Path, problem: ccmac.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trial(tmp_path / "trial", problem)
    file = folder / "me-1.toml"
    host, _, port = str(read_mine(file).listen).rpartition(":")
    capsys.readouterr()
    with socket.create_server((host, int(port))):
        assert main(["agent", str(file)]) == 2
        assert "cannot listen there (Address already in use" in capsys.readouterr().err
    (folder / "keys" / "agent-1.key").chmod(0o644)
    assert main(["agent", str(file)]) == 2
    assert "others may read it; do: chmod 600" in capsys.readouterr().err


def test_an_agent_of_other_sizes_than_the_public_file_is_refused(
    tmp_path: Path, problem: ccmac.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trial(tmp_path / "trial", problem)
    public = folder / "public.toml"
    public.write_text(public.read_text().replace("m = 2", "m = 3"))
    assert main(["agent", str(folder / "me-0.toml")]) == 2
    assert "agent 0, block A: has 2 rows but the coupled equation has 3" in capsys.readouterr().err
    assert read_mine(folder / "me-0.toml").agent == 0


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
