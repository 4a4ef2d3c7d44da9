"""How long a run takes on machines that are not at hand: latency, bandwidth, and waiting.

One neighbor round of an agent with m neighbors that sends s bytes in all takes

    T = latency + alpha m + beta s

(latency: seconds that messages are on their way, all at once; alpha: seconds of work per message;
beta: seconds per byte). They are fitted to measured rounds; within one machine the first is taken
to be nothing. Agents wait only for their neighbors, so that with uneven speeds the time of a run is
a longest path through the rounds; :func:`simulate` follows it agent by agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.runtime.base import FLOAT_BYTES


@dataclass(frozen=True)
class Point:
    """A measured round: messages and bytes sent by one process, seconds taken."""

    messages: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class CostModel:
    """T = latency + alpha * messages + beta * bytes.

    ``misfit`` is the largest relative error of the fit.
    """

    alpha: float
    beta: float
    misfit: float = 0.0
    latency: float = 0.0

    def round_seconds(self, messages: int, size: int) -> float:
        """Seconds of one round."""
        return self.latency + self.alpha * messages + self.beta * size

    def iteration_seconds(
        self, cost: Mapping[str, int], degree: int, compute: float = 0.0
    ) -> float:
        """Seconds of one iteration when all agents keep pace.

        ``cost`` is its ledger (``rounds``, and ``bytes`` of the busiest agent), ``degree`` the
        largest number of neighbors, ``compute`` the seconds of local work.
        """
        rounds = cost.get("rounds", 0)
        size = cost.get("bytes", 0)
        return compute + rounds * self.round_seconds(degree, 0) + self.beta * size

    def __str__(self) -> str:
        bandwidth = f"{1 / self.beta / 1e9:.3g} GB/s" if self.beta else "unlimited"
        way = f"{self.latency * 1e3:.3g} ms on the way, " if self.latency else ""
        return (
            f"{way}latency {self.alpha * 1e6:.3g} us per message, bandwidth {bandwidth} "
            f"(largest misfit {self.misfit:.0%})"
        )


def fit(points: Sequence[Point], *, apart: bool = False) -> CostModel:
    """Least squares in relative error, no number negative; needs two sizes of message.

    ``apart``: between machines, so that there is a latency (needs two counts of messages as well).
    """
    if len({(p.messages, p.bytes) for p in points}) < 2:
        raise InputError("cost model: measure at least two sizes of message, then fit")
    if any(p.seconds <= 0 for p in points):
        raise InputError("cost model: a measured time is not positive; measure more repetitions")
    rows = np.array([[p.messages, p.bytes, float(apart)] for p in points], dtype=np.float64)
    seconds = np.array([p.seconds for p in points])
    relative = rows / seconds[:, None]
    # Messages and bytes differ by orders of magnitude: balance the columns before solving.
    scale = np.maximum(np.abs(relative).max(axis=0), np.finfo(float).tiny)
    solution = scipy.optimize.nnls(relative / scale, np.ones(len(points)))[0] / scale
    misfit = float(np.abs(relative @ solution - 1.0).max())
    alpha, beta, latency = (float(v) for v in solution)
    return CostModel(alpha, beta, misfit, latency)


@dataclass(frozen=True)
class Workload:
    """One iteration: local work of ``compute`` seconds, then ``rounds`` rounds of ``width`` floats.

    ``jitter`` is the standard deviation of the logarithm of every duration; each is multiplied by
    a lognormal factor of mean one. Zero means that all agents are equally fast.
    """

    rounds: int
    width: int
    compute: float = 0.0
    jitter: float = 0.0


def simulate(
    network: Network, model: CostModel, work: Workload, iterations: int = 1, seed: int = 0
) -> float:
    """Seconds per iteration when every agent has a host of its own.

    With t_i the clock of agent i and N(i) its neighbors, a round is
    t_i <- max(t_i, max_{j in N(i)} t_j) + (latency + (alpha + 8 beta width) |N(i)|) * factor:
    nobody waits for anybody but neighbors. The result is the slowest clock at the end, over
    ``iterations``. Without jitter, and with one degree, it equals
    :meth:`CostModel.iteration_seconds`.
    """
    reach, degrees = _closed_neighborhoods(network.weights)
    starts = reach.indptr[:-1]
    members = reach.indices
    size = FLOAT_BYTES * work.width
    round_time = model.latency + degrees * (model.alpha + model.beta * size)
    rng = np.random.default_rng(seed)
    clocks = np.zeros(network.n)
    for _ in range(iterations):
        clocks = clocks + work.compute * _factors(rng, network.n, work.jitter)
        for _ in range(work.rounds):
            ready = np.maximum.reduceat(clocks[members], starts)
            clocks = ready + round_time * _factors(rng, network.n, work.jitter)
    return float(clocks.max()) / iterations


def tree_rounds(network: Network, samples: int = 16, seed: int = 0) -> int:
    """Rounds of one averaging along a breadth-first tree, without all pairs of distances.

    2 x the least eccentricity among ``samples`` random agents: at least 2 x radius and at most
    4 x radius. Cost: ``samples`` searches of the graph, for networks too large for the exact one.
    """
    rng = np.random.default_rng(seed)
    roots = rng.choice(network.n, size=min(samples, network.n), replace=False)
    return 2 * int(network.hops(roots.tolist()).max(axis=1).min())


def _closed_neighborhoods(weights: sp.csr_array) -> tuple[sp.csr_array, Array]:
    """Support of I + |W|, so that no row is empty, and the degrees."""
    reach = sp.csr_array(abs(weights) + sp.eye_array(weights.shape[0]))
    degrees = np.diff(reach.indptr).astype(np.float64) - 1.0
    return reach, degrees


def _factors(rng: np.random.Generator, n: int, jitter: float) -> Array:
    """Lognormal factors of mean one."""
    if jitter == 0.0:
        return np.ones(n)
    return rng.lognormal(-0.5 * jitter**2, jitter, n)
