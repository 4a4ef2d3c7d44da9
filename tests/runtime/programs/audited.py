"""An audited run; rank 0 writes the report, each rank the payloads it sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from ccmac.network import Network
from ccmac.runtime import averaging
from ccmac.runtime.audit import Audit, table
from ccmac.runtime.mpi import Mpi, guard

WIDTH = 6


def main(name: str, scheme: str, folder: Path) -> None:
    network = {"ring": Network.ring(8), "grid": Network.grid(2, 4)}[name]
    sent: list[tuple[str, int, np.ndarray]] = []
    audit = Audit(lambda kind, peer, payload: sent.append((kind, peer, payload.copy())))
    runtime = Mpi(network, averaging=averaging.by_name(network, scheme), audit=audit)
    opened = len(sent)
    block = np.add.outer(np.arange(8.0), np.zeros(WIDTH))[runtime.owned.start : runtime.owned.stop]
    runtime.mix(block)
    runtime.average(block)
    runtime.total(block[:, :1])
    runtime.collect([np.full(3, float(agent)) for agent in runtime.owned])
    report = runtime.audit_report()
    first = [row for kind, _, row in sent[opened:] if kind == "halo"][: len(runtime.peers)]
    np.savez(
        folder / f"sent-{runtime.rank}.npz",
        agents=np.concatenate([rows[:, 0] for rows in first] or [np.zeros(0)]),
        peers=np.concatenate(
            [np.full(len(r), p) for r, p in zip(first, runtime.peers, strict=True)] or [np.zeros(0)]
        ),
    )
    if report is not None:
        rows = [[e.rank, e.kind, e.peer, e.floats, e.agents, e.messages] for e in report]
        (folder / "report.json").write_text(json.dumps(rows))
        print(table(report))


with guard():
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
