"""Where data goes: rows, and what rides in them, to the owners of neighbors; nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmac.network import Network
from ccmac.runtime import averaging
from ccmac.runtime.audit import EVERYONE, Audit, Entry, entries, table
from ccmac.runtime.notes import NOTE
from ccmac.runtime.partition import bounds, owners

WIDTH = 6


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("network", "scheme", "ranks"),
    [(Network.ring(8), "relay", 4), (Network.grid(2, 4), "tree", 3)],
    ids=lambda value: value.name if isinstance(value, Network) else str(value),
)
def test_messages_follow_the_edges(
    mpi_run: Callable[..., Any], tmp_path: Path, network: Network, scheme: str, ranks: int
) -> None:
    name = network.name.partition("(")[0]
    job = mpi_run(ranks, "audited.py", name, scheme, str(tmp_path))
    report = [Entry(*row) for row in json.loads((tmp_path / "report.json").read_text())]
    assert job.stdout.rstrip() == table(report)

    # Independent count: agent j of rank s goes to rank r when an agent of r reads it, by an edge.
    owner = owners(np.arange(8), bounds(8, ranks))
    expected: Counter[tuple[int, int, int]] = Counter()
    # How everybody rounds, an average, a sum, and the sizes of what is collected.
    schedule = 4 * averaging.Tree(network).schedule if scheme == "tree" else ()
    for matrix in (network.weights, *schedule):
        read = {
            (int(owner[j]), int(owner[i]), int(j)) for i, j in zip(*matrix.nonzero(), strict=True)
        }
        pairs = Counter((s, r) for s, r, _ in read if s != r)
        expected.update((s, r, rows) for (s, r), rows in pairs.items())
    measured: Counter[tuple[int, int, int]] = Counter()
    for e in report:
        if e.kind == "halo":
            measured[e.rank, e.peer, e.agents] += e.messages
    assert measured == expected
    rows = [e for e in report if e.kind in ("halo", "relay")]
    # Rows alone in a plain round; else with one float in which processes tell each other things.
    sizes = 1 if scheme == "relay" else network.n  # a slot for every agent where rows are summed
    assert {e.floats // e.agents for e in rows} == {WIDTH, WIDTH + NOTE, 1 + NOTE, sizes + NOTE}
    assert all(e.floats % e.agents == 0 for e in rows)
    joined = {(int(owner[i]), int(owner[j])) for i, j in network.graph.edges}
    assert {(e.rank, e.peer) for e in rows} <= joined | {(b, a) for a, b in joined}
    # Each relay brings every rank the rows of all other agents, each once.
    relayed = {
        r: sum(e.agents * e.messages for e in rows if (e.peer, e.kind) == (r, "relay"))
        for r in range(ranks)
    }
    others = {r: 4 * int(np.sum(owner != r)) if scheme == "relay" else 0 for r in range(ranks)}
    assert relayed == others

    # Everything else: four words of a digest, and what was asked for, on its way to the root.
    passed_on = {r: int(np.sum(owner == r)) for r in range(ranks)}
    for e in sorted((e for e in report if e.kind == "collect"), key=lambda e: e.floats):
        assert (e.rank, e.peer) in joined | {(b, a) for a, b in joined}
        assert e.floats == 3 * passed_on[e.rank]
        passed_on[e.peer] += e.floats // 3
    assert passed_on[0] == network.n
    for e in report:
        assert e.kind in ("halo", "relay", "collect", "token")
        assert e.kind != "token" or (e.peer, e.floats, e.agents) == (EVERYONE, 4, 0)

    # The payloads themselves: the round with W sends an agent's row to its neighbors' owners only.
    for rank in range(ranks):
        with np.load(tmp_path / f"sent-{rank}.npz", allow_pickle=False) as sent:
            for agent, peer in zip(sent["agents"], sent["peers"], strict=True):
                assert owner[int(agent)] == rank
                assert int(peer) in {int(owner[j]) for j in network.neighbors(int(agent))}


def test_messages_of_one_size_are_counted_together() -> None:
    seen: list[str] = []
    audit = Audit(lambda kind, peer, payload: seen.append(kind))
    for _ in range(3):
        audit.record("halo", 1, np.ones((2, 5)), 2)
    audit.record("token", EVERYONE, np.ones(1), 1)
    audit.record("halo", 2, np.ones((0, 5)), 0)  # an empty message carries nothing
    report = entries(0, audit.as_rows().tolist())
    assert report == [Entry(0, "halo", 1, 10, 2, 3), Entry(0, "token", EVERYONE, 1, 1, 1)]
    assert seen == ["halo"] * 3 + ["token"]
    assert "everyone" in table(report)
    assert entries(0, Audit().as_rows().tolist()) == []
