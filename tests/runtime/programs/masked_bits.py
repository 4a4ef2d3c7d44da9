"""Masked sums between ranks and in one process: bits and bills; and what a listener sees.

Prints how many runs are equal, and the least p-value of a chi-squared test for bytes of words that
are equally likely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats
import solve_bits

import ccmac
from ccmac.runtime.audit import Audit
from ccmac.runtime.mpi import MPI, Mpi, guard

CASES = ("averaged", "vertical")


class Listened(Mpi):
    """Keeps the words of all rows that leave this rank, also those that it passes on."""

    def __init__(self, network: ccmac.Network) -> None:
        self.heard: set[bytes] = set()  # a row that is sent twice counts once
        self.width = 0  # of the words in what is sent now
        super().__init__(network, averaging="masked", audit=Audit(self.listen))

    def _share(self, words: Any, tables: Any) -> Any:
        self.width = words.shape[1]
        try:
            return super()._share(words, tables)
        finally:
            self.width = 0

    def listen(self, kind: str, peer: int, payload: Any) -> None:
        if kind == "relay" and self.width:
            self.heard |= {row[: self.width].tobytes() for row in payload}


def main() -> None:
    network = solve_bits.network("ring")
    equal = 0
    p_values = []
    for name in CASES:
        problem, options = solve_bits.case(name)
        options["max_iterations"] = 12
        runtime = Listened(network)
        here = ccmac.solve(problem, runtime=runtime, **options)
        words = np.frombuffer(b"".join(runtime.heard), dtype=np.uint8)
        assert len(words) > 10_000
        whole = ccmac.solve(problem, network, averaging="masked", **options)
        mine = zip(here.x, whole.x[here.agents.start : here.agents.stop], strict=True)
        same = (
            here.z.tobytes() == whole.z.tobytes()
            and all(x.tobytes() == y.tobytes() for x, y in mine)
            and here.ledger.as_dict() == whole.ledger.as_dict()
            and here.status == whole.status
        )
        equal += MPI.COMM_WORLD.allreduce(int(same), MPI.MIN)
        p_values.append(scipy.stats.chisquare(np.bincount(words, minlength=256)).pvalue)
    least = MPI.COMM_WORLD.allreduce(min(p_values), MPI.MIN)
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {equal} of {len(CASES)}, least p-value {least:.3g}")


with guard():
    main()
