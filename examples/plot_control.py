"""How do three carts follow a path that they agree on?

They have limits of force, speed and power. Every step each cart looks 12 steps ahead, all solve
one problem, and the first force is applied. Later problems start from earlier ones.

    python examples/plot_control.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import scipy.sparse as sp

import ccmac

matplotlib.use("Agg")
import matplotlib.pyplot as plt

AHEAD = 12
STEP = 0.2
CARTS = 3
FORCE = 1.0
SPEED = 1.2
POWER = 1.8
MASS = np.array([1.0, 1.5, 0.8])


def target(t: np.ndarray) -> np.ndarray:
    """Where the first cart wants the group to be."""
    return 1.5 * np.sin(0.35 * STEP * t)


def cart(i: int, now: np.ndarray, t: int) -> ccmac.Agent:
    """Positions, speeds and forces over the window; z is the common trajectory."""
    n = AHEAD
    eye = sp.eye_array(n)
    back = sp.eye_array(n, k=-1)
    dynamics = sp.block_array(
        [[eye - back, -STEP * back, None], [None, eye - back, -STEP / MASS[i] * eye]]
    )
    right = np.zeros(2 * n)
    right[0], right[n] = now[0] + STEP * now[1], now[1]
    follow = 1.0
    leads = 4.0 * (i == 0)
    H = sp.block_array(
        [
            [follow * eye, None, None, -follow * eye],
            [None, 1e-3 * eye, None, None],
            [None, None, 0.05 * eye, None],
            [-follow * eye, None, None, (follow + leads) * eye],
        ]
    )
    wish = leads * target(np.arange(t + 1, t + n + 1))
    limits = np.repeat([np.inf, SPEED, FORCE], n)
    return ccmac.Agent(
        ccmac.objectives.Quadratic(sp.csr_array(H), np.concatenate([np.zeros(3 * n), wish])),
        A=sp.hstack([sp.csr_array((n, 2 * n)), eye]),
        b=np.full(n, POWER / CARTS),
        C=dynamics,
        c=right,
        lower=-limits,
        upper=limits,
        name=f"cart {i}",
    )


def main(path: str, steps: int = 10) -> None:
    state = np.array([[0.0, 0.0], [-0.6, 0.0], [0.5, 0.0]])
    seen = [state.copy()]
    forces = []
    rounds = []
    prepared = None
    result = None
    for t in range(steps):
        carts = [cart(i, state[i], t) for i in range(CARTS)]
        if prepared is None:
            prepared = ccmac.prepare(ccmac.Problem(carts, sense="<="), "path")
        else:  # the same matrices: where the carts are, and where the first one wants to go
            prepared.update(c=[a.c for a in carts], g=[a.objective.g for a in carts])
        result = prepared.solve(tol=1e-8, warm_start=result)
        u = np.array([x[2 * AHEAD] for x in result.x])
        state[:, 0] += STEP * state[:, 1]
        state[:, 1] += STEP * u / MASS
        seen.append(state.copy())
        forces.append(u)
        rounds.append(sum(result.ledger.of(p)["rounds"] for p in ("setup", "solve", "monitor")))
    assert result is not None
    most = max(rounds[1:], default=0)
    print(f"{result.status}: {rounds[0]} rounds for the first step, then at most {most} each")
    time = STEP * np.arange(steps + 1)
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
    above.plot(time, target(np.arange(steps + 1)), "k--", label="wish of cart 0")
    above.plot(time, np.array(seen)[:, :, 0], label=[f"cart {i}" for i in range(CARTS)])
    above.legend(fontsize="small")
    above.set_ylabel("position")
    below.step(time[:-1], np.array(forces), where="post")
    below.axhline(FORCE, color="0.6", lw=0.8)
    below.axhline(-FORCE, color="0.6", lw=0.8)
    below.set(xlabel="time", ylabel="force")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
