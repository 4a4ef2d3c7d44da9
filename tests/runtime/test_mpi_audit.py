"""Where data goes: rows to the owners of neighbors, scalars to everyone, nothing else."""

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
from ccmac.runtime.partition import bounds, owners

WIDTH = 6


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("network", "scheme", "ranks"),
    [
        (Network.ring(8), "relay", 4),
        (Network.grid(2, 4), "tree", 3),
    ],
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
    schedule = averaging.Tree(network).schedule if scheme == "tree" else ()
    for matrix in (network.weights, *schedule):
        read = {
            (int(owner[j]), int(owner[i]), int(j)) for i, j in zip(*matrix.nonzero(), strict=True)
        }
        pairs = Counter((s, r) for s, r, _ in read if s != r)
        expected.update((s, r, rows) for (s, r), rows in pairs.items())
    measured = {(e.rank, e.peer, e.agents): e.messages for e in report if e.kind == "halo"}
    assert measured == dict(expected)
    rows = [e for e in report if e.kind in ("halo", "relay")]
    assert all(e.floats == WIDTH * e.agents for e in rows)
    joined = {(int(owner[i]), int(owner[j])) for i, j in network.graph.edges}
    assert {(e.rank, e.peer) for e in rows} <= joined | {(b, a) for a, b in joined}
    # A relay brings every rank the rows of all other agents, each once.
    relayed = {
        r: sum(e.agents * e.messages for e in rows if (e.peer, e.kind) == (r, "relay"))
        for r in range(ranks)
    }
    others = {r: int(np.sum(owner != r)) if scheme == "relay" else 0 for r in range(ranks)}
    assert relayed == others

    # Everything else: one scalar an agent, four words of a digest, and what was asked for.
    for e in report:
        if e.kind == "gather":
            assert (e.peer, e.floats) == (EVERYONE, e.agents)
        elif e.kind == "token":
            assert (e.peer, e.floats, e.agents) == (EVERYONE, 4, 0)
        elif e.kind == "collect":
            assert (e.peer, e.floats) == (0, 3 * e.agents)
        else:
            assert e.kind in ("halo", "relay")

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
    audit.record("gather", EVERYONE, np.ones(1), 1)
    audit.record("halo", 2, np.ones((0, 5)), 0)  # an empty message carries nothing
    report = entries(0, audit.as_rows().tolist())
    assert report == [Entry(0, "halo", 1, 10, 2, 3), Entry(0, "gather", EVERYONE, 1, 1, 1)]
    assert seen == ["halo"] * 3 + ["gather"]
    assert "everyone" in table(report)
    assert entries(0, Audit().as_rows().tolist()) == []
