"""The demo: a vertical federated problem from statement to certified solution."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ccmac import vfl
from ccmac.angles.measure import geometry
from ccmac.angles.report import Geometry
from ccmac.api import solve
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.paper.complexity import Lift, certified_lift
from ccmac.paper.data import Dataset, generate
from ccmac.paper.experiments.task import ridge
from ccmac.plans import Plan
from ccmac.results import Result

METHOD = "cross-apapc"  # gradients only, as in the theory; what auto takes is shown next to it
AGENTS = 8
TOL = 1e-6


@dataclass(frozen=True)
class Story:
    """Everything the demo shows, computed once."""

    data: Dataset
    problem: vfl.VflProblem
    network: Network
    geometry: Geometry
    plan: Plan
    result: Result
    balanced: Result
    krylov: Result
    lift: Lift
    direct: Array
    seconds: float

    @property
    def distance(self) -> float:
        """||(w, z) - (w*, z*)|| to the direct solution, in the problem's variables."""
        w = self.problem.weights(self.result)
        z = np.asarray(self.data.X @ self.direct) / self.problem.prediction_scale
        gap = np.sum((w - self.direct) ** 2) + np.sum((self.result.z - z) ** 2)
        return float(np.sqrt(gap))

    @property
    def accuracy(self) -> float:
        """Share of training labels that the sign of the prediction meets."""
        predicted = np.sign(self.problem.predictions(self.result))
        return float(np.mean(predicted == self.data.y))


def compute() -> Story:
    """Build, look, plan, solve; the same numbers on every machine up to rounding."""
    begun = time.perf_counter()
    data = generate("a1a")
    uneven = vfl.problem(data.X, data.y, AGENTS, shares=("cross_factor", 5.0))
    even = vfl.problem(data.X, data.y, AGENTS)
    network = Network.ring(AGENTS)
    found = geometry(uneven, network=network)
    result = solve(uneven, network, METHOD, TOL)
    balanced = solve(even, network, METHOD, TOL)
    krylov = solve(uneven, network, tol=TOL)
    assert found.structural is not None
    assert result.plan is not None
    lift = certified_lift(uneven, found.structural, found.cross_factor)
    assert lift is not None
    return Story(
        data,
        uneven,
        network,
        found,
        result.plan,
        result,
        balanced,
        krylov,
        lift,
        ridge(data.X, data.y, 1e-2),
        time.perf_counter() - begun,
    )


def tell(story: Story) -> list[str]:
    """The story, one paragraph per entry; the first line of each is its heading."""
    s = story
    ledger = story.result.ledger
    predicted = s.plan.predicted or {}
    lift = s.lift.rounds_per_iteration
    rounds = ledger["rounds"]
    N, d = s.data.X.shape
    auto = s.krylov.plan.method if s.krylov.plan is not None else METHOD
    equal = s.geometry.rebalanced_cross_factor or 1.0
    return [
        f"1. The problem\n"
        f"{N:,} records with {d} features ({s.data.name}, generated). {AGENTS} agents on a ring "
        f"hold about {d // AGENTS} columns each and fit one ridge model together. Agent i knows "
        "its columns X_i and weights w_i; the predictions p are shared: "
        "sum_i (X_i w_i - alpha_i p) = 0.",
        f"2. Its geometry\n"
        f"The shares alpha_i are uneven on purpose: cross factor chi = "
        f"{s.geometry.cross_factor:.3g} (1 is the best there is). Affine work grows with chi. "
        f"Equal shares would bring it to {equal:.3g}.",
        f"3. The plan\n"
        f"{s.plan.method} ({s.plan.realization}), normalizer "
        f"{s.plan.settings.get('normalizer')}, one average takes "
        f"{s.plan.averaging_rounds} rounds. Predicted: "
        f"{s.plan.iterations or 0:.0f} iterations, {predicted.get('rounds', 0):,.0f} rounds.",
        f"4. The solution\n"
        f"{s.result.status} after {s.result.iterations} iterations. Certified error at most "
        f"{s.result.error_bound:.2g} (asked: {TOL:g} of its norm), without knowing the solution. "
        f"A direct solve in one place says {s.distance:.2g}. {s.accuracy:.1%} of labels are met.",
        f"5. The bill\n"
        f"{ledger['gradients']:,} gradients, {sum(ledger[u] for u in 'AB'):,} block products and "
        f"{rounds:,} neighbor rounds; {ledger.of('setup')['rounds']:,} rounds of setup and "
        f"{ledger.of('monitor')['rounds']:,} for the certificate come on top. With equal shares: "
        f"{s.balanced.iterations} iterations, {s.balanced.ledger['rounds']:,} rounds.",
        f"6. What that compares with\n"
        f"The certified lift of the theory needs {lift:,} rounds for one iteration of this "
        f"problem; with no more iterations than here that is {lift * s.result.iterations:,} "
        f"rounds, against {rounds:,}. The other way, auto takes {auto} for this objective: "
        f"{s.krylov.iterations} iterations and {s.krylov.ledger['rounds']:,} rounds, with setup "
        f"and certificate {s.krylov.ledger.total('rounds'):,} (against "
        f"{ledger.total('rounds'):,}).",
        f"Done in {s.seconds:.1f} s on one machine.",
    ]
