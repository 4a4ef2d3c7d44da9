"""A deterministic iteration with checkpoints: ``iterating.py DIR LAST EVERY PAUSE``.

Resumes from DIR when it holds a checkpoint. Used under MPI and, imported, in one process.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from ccmac.network import Network
from ccmac.runtime import Runtime
from ccmac.storage import checkpoint

MANIFEST = {"problem": "abc", "version": "1"}
NETWORK = Network.grid(2, 4)


def iterate(
    runtime: Runtime, folder: Path | None, last: int, every: int, pause: float = 0.0
) -> np.ndarray:
    """Rows of the owned agents after ``last`` iterations."""
    mine = slice(runtime.owned.start, runtime.owned.stop)
    block = np.random.default_rng(3).standard_normal((runtime.n, 5))[mine]
    momentum = np.zeros(())
    first = 0
    if folder is not None and checkpoint.exists(folder):
        saved = checkpoint.load(folder, runtime.owned, MANIFEST)
        block = np.stack(saved.agents["block"])
        momentum = saved.replicated["momentum"]
        first = saved.iteration
        runtime.ledger.restore(saved.manifest["ledger"])
    store = checkpoint.Store(folder or Path(), runtime.n, MANIFEST)
    for iteration in range(first, last):
        if folder is not None and iteration % every == 0:
            manifest = {"ledger": runtime.ledger.as_dict()}
            state = {"block": list(block)}
            replicated = {"momentum": momentum}
            checkpoint.save(
                runtime, store, iteration, manifest, agents=state, replicated=replicated
            )
        block = np.sin(block - 0.3 * runtime.mix(block) + 0.1 * runtime.average(block) + momentum)
        momentum = 0.5 * momentum + 0.01 * runtime.total(block[:, :1])[0]
        time.sleep(pause)
    return block


if __name__ == "__main__":
    from ccmac.runtime.mpi import Mpi, guard

    with guard():
        runtime = Mpi(NETWORK)
        folder, last, every, pause = sys.argv[1:]
        roster = runtime.roster()
        if roster is not None:
            print("\n".join(roster), flush=True)
        block = iterate(runtime, Path(folder), int(last), int(every), float(pause))
        rows = runtime.collect(list(block))
        if rows is not None:
            np.save(Path(folder) / "result.npy", np.stack(rows), allow_pickle=False)
            print(runtime.ledger.as_dict())
