"""Small fixed problems, drawn here from seeds and solved here, so that nothing else moves them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from numpy.typing import NDArray

import ccmac
from ccmac.objectives import (
    L1,
    Box,
    Hinge,
    Huber,
    LeastSquares,
    Logistic,
    Quadratic,
    Separable,
    SquaredDistance,
    Sum,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posed:
    """A problem (or a Stack), its network, and its solution where one is written down."""

    problem: Any
    network: ccmac.Network | None
    reference: Any = None


# -- smooth and strongly convex --------------------------------------------------------------------
def _quadratic(seed: int, n: int, without: str = "", *, B_zero: bool = False) -> Any:
    """f_i = u'H_i u/2 - g_i'u under the blocks A, B, C, D; right sides read off a random point."""
    random = np.random.default_rng(seed)
    d = 3
    q = 3
    m = 2
    z = random.standard_normal(q)
    agents = []
    hessians = []
    slopes = []
    for i in range(n):
        x = random.standard_normal(d)
        root = random.standard_normal((d + q, d + q)) / 2
        H = root @ root.T + np.eye(d + q)
        g = random.standard_normal(d + q)
        A = random.standard_normal((m, d))
        B = random.standard_normal((m, q)) * (not B_zero)
        C = random.standard_normal((1, d))
        D = random.standard_normal((1, q))
        blocks: dict[str, Any] = {"A": A, "B": B, "C": C, "D": D if i == 0 else None}
        blocks = {k: v for k, v in blocks.items() if k not in without and v is not None}
        b = np.zeros(m)
        for name, at in (("A", x), ("B", z)):
            b += blocks[name] @ at if name in blocks else 0.0
        sides: dict[str, Any] = {"b": b} if {"A", "B"} & set(blocks) else {}
        if "C" in blocks:
            sides["c"] = C @ x
        if "D" in blocks:
            sides["e"] = D @ z
        agents.append(ccmac.Agent(Quadratic((H + H.T) / 2, g), **blocks, **sides))
        hessians.append((H + H.T) / 2)
        slopes.append(g)
    coupled = bool({"A", "B"} - set(without))
    problem = ccmac.Problem(agents, q=q, m=m if coupled else 0)
    return problem, _kkt(agents, hessians, slopes, d, q)


def _kkt(agents: list[Any], hessians: list[Array], slopes: list[Array], d: int, q: int) -> Any:
    """The solution by one dense least-squares solve of the optimality conditions."""
    n = len(agents)
    size = n * d + q
    H = np.zeros((size, size))
    g = np.zeros(size)
    rows = []
    right = []
    coupled = np.zeros((2, size))
    sides = np.zeros(2)
    for i, agent in enumerate(agents):
        mine = np.r_[i * d : (i + 1) * d, n * d : size]
        H[np.ix_(mine, mine)] += hessians[i]
        g[mine] += slopes[i]
        for block, columns in ((agent.A, mine[:d]), (agent.B, mine[d:])):
            if block is not None:
                coupled[:, columns] += block
        sides += 0.0 if agent.b is None else agent.b
        for block, side, columns in ((agent.C, agent.c, mine[:d]), (agent.D, agent.e, mine[d:])):
            if block is not None:
                rows.append(np.zeros((len(block), size)))
                rows[-1][:, columns] = block
                right.append(side)
    K = np.vstack([coupled, *rows])
    v = np.concatenate([sides, *right])
    matrix = np.block([[H, K.T], [K, np.zeros((len(v), len(v)))]])
    u = scipy.linalg.lstsq(matrix, np.concatenate([g, v]))[0][:size]
    return ccmac.Solution([u[i * d : (i + 1) * d] for i in range(n)], u[n * d :])


def _data() -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    X = random.standard_normal((18, 12))
    return X, X @ random.standard_normal(12) + 0.3 * random.standard_normal(18)


def _ridge() -> Posed:
    X, y = _data()
    gram = X.T @ X / len(y) + 0.1 * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, X.T @ y / len(y))
    problem = ccmac.vfl.problem(X, y, 6, regularization=0.1)
    return Posed(problem, ccmac.Network.ring(6), weights)


def _logistic() -> Posed:
    X, y = _data()
    y = np.sign(y)
    N = len(y)
    rho = 0.5
    lam = 0.1

    def gradient(w: Array) -> Array:
        p = X @ w
        return np.asarray(X.T @ (-y / (1 + np.exp(y * p)) + rho * p) / N + lam * w)

    found = scipy.optimize.root(gradient, np.zeros(X.shape[1]), tol=1e-13)
    problem = ccmac.vfl.problem(
        X, y, 6, loss="logistic", regularization=lam, shared_regularization=rho
    )
    return Posed(problem, ccmac.Network.ring(6), found.x)


def _uneven() -> Posed:
    """B_i = beta_i I, and losses on z that differ: nobody knows their sum; C at one agent."""
    random = np.random.default_rng(41)
    agents = []
    for i, (d, beta) in enumerate(((3, 0.7), (2, -0.2), (4, 1.1), (1, 0.4))):
        y = random.choice([-1.0, 1.0], 8)
        loss = Huber(y=3 * y, delta=0.2, weight=4.0) if i % 2 else Logistic(y=y, weight=2.0)
        H = np.diag(random.uniform(0.1, 2.0, d)) + 0.1
        C = random.standard_normal((1, d)) if d == 4 else None
        agents.append(
            ccmac.Agent(
                Separable(x=Quadratic(H, random.standard_normal(d)), z=loss),
                C=C,
                A=3 * random.standard_normal((8, d)),
                B=beta * sp.eye_array(8),
                b=random.standard_normal(8),
                c=None if C is None else np.ones(1),
            )
        )
    return Posed(ccmac.Problem(agents), ccmac.Network.ring(4))


def _smooth() -> Posed:
    """Losses of x and z together under general A, B and C: a matrix is summed at every point."""
    random = np.random.default_rng(42)
    parts = [Logistic(4 * random.standard_normal((6, 5)), np.ones(6), ridge=0.1) for _ in range(3)]
    return _tied(43, parts)


# -- merely convex, or with kinks ------------------------------------------------------------------
def _tied(seed: int, objectives: list[Any], d: int = 3, q: int = 2) -> Posed:
    """The objectives under A, B and C of a feasible problem, on a ring (a path of two)."""
    random = np.random.default_rng(seed)
    z = random.uniform(-1, 1, q)
    agents = []
    for objective in objectives:
        x = random.uniform(-1, 1, d)
        A, B, C = (random.standard_normal(shape) for shape in ((2, d), (2, q), (1, d)))
        agents.append(ccmac.Agent(objective, A=A, B=B, b=A @ x + B @ z, C=C, c=C @ x))
    n = len(objectives)
    return Posed(ccmac.Problem(agents), ccmac.Network.ring(n) if n > 2 else ccmac.Network.path(n))


def _flat() -> Posed:
    """Least squares with fewer rows than unknowns: smooth, not strongly convex."""
    random = np.random.default_rng(11)
    return _tied(12, [LeastSquares(random.standard_normal((2, 5)), np.ones(2)) for _ in range(3)])


def _absolute() -> Posed:
    random = np.random.default_rng(21)
    draw = random.standard_normal
    return _tied(22, [Separable(x=L1(1.0, draw(3)), z=L1(0.5, draw(2))) for _ in range(3)])


def _long() -> Posed:
    """A lasso with many more rows than columns: brought to the range of its rows."""
    random = np.random.default_rng(44)
    X = random.standard_normal((120, 6))
    y = X @ [1.0, 2.0, 0.0, 0.0, -1.0, 0.1] + 0.3 * random.standard_normal(120)
    return Posed(ccmac.vfl.problem(X, y, 3, loss="squared", l1=0.1), ccmac.Network.ring(3))


def _apart() -> Posed:
    """Two agents without any equation: every system is empty."""
    parts = [L1(1.0, np.array([1.0, -2.0, 0.5])), L1(0.5, np.array([3.0, 1.0]))]
    agents = [
        ccmac.Agent(f, C=np.zeros((0, d)), c=np.zeros(0))
        for f, d in zip(parts, (3, 2), strict=True)
    ]
    return Posed(ccmac.Problem(agents, q=0, m=0), ccmac.Network.path(2))


def _bowls() -> Posed:
    """The same, smooth and curved in some directions only."""
    random = np.random.default_rng(45)
    parts = [LeastSquares(random.standard_normal((2, d)), np.ones(2)) for d in (3, 2)]
    agents = [
        ccmac.Agent(f, C=np.zeros((0, d)), c=np.zeros(0))
        for f, d in zip(parts, (3, 2), strict=True)
    ]
    return Posed(ccmac.Problem(agents, q=0, m=0), ccmac.Network.path(2))


def _hinge() -> Posed:
    parts = [Separable(x=SquaredDistance(0.5), z=Hinge(y=np.array([1.0, s]))) for s in (1.0, -1.0)]
    return _tied(23, parts)


def _box() -> Posed:
    random = np.random.default_rng(24)
    parts = []
    for _ in range(3):
        inside = Sum(SquaredDistance(1.0, random.standard_normal(3)), Box(-1.5, 1.5))
        parts.append(Separable(x=inside, z=SquaredDistance(0.2)))
    return _tied(25, parts)


def _composite() -> Posed:
    """A logistic loss plus L1: the sum has no prox, its parts are smooth and simple."""
    random = np.random.default_rng(26)
    parts = []
    for _ in range(2):
        rows = random.standard_normal((3, 3))
        labels = np.array([1.0, -1.0, 1.0])
        M = np.vstack([rows, 0.6 * rows])
        y = np.concatenate([labels, -labels])
        parts.append(Separable(x=Logistic(M, y) + L1(0.2), z=L1(0.5, random.standard_normal(2))))
    return _tied(27, parts)


def _stack() -> Posed:
    random = np.random.default_rng(31)
    w = random.standard_normal(8)
    root = random.standard_normal((8, 8)) / 3
    H = root @ root.T + np.eye(8)
    channels = [(M, M @ w) for M in (random.standard_normal((r, 8)) for r in (2, 1, 2))]
    return Posed(ccmac.Stack(Quadratic((H + H.T) / 2, random.standard_normal(8)), channels), None)


def _contradiction() -> Posed:
    """Two agents whose coupled equations cannot hold together."""
    row = np.ones((2, 2))
    agents = [
        ccmac.Agent(SquaredDistance(1.0), A=row, B=row, b=np.array([1.0, 2.0 + k]))
        for k in range(2)
    ]
    return Posed(ccmac.Problem(agents, q=2), ccmac.Network.path(2))


@cache
def posed(name: str) -> Posed:
    """The problem called ``name``; built once."""
    ring = ccmac.Network.ring(4)
    made = {
        "quadratic": lambda: Posed(*_reordered(_quadratic(1, 4), ring)),
        "B-zero": lambda: Posed(*_reordered(_quadratic(2, 4, B_zero=True), ring)),
        "no-B": lambda: Posed(*_reordered(_quadratic(3, 4, "B"), ring)),
        "no-coupling": lambda: Posed(*_reordered(_quadratic(4, 4, "AB"), ring)),
        "free-x": lambda: Posed(*_reordered(_quadratic(5, 4, "CD"), ring)),
        "grid": lambda: Posed(*_reordered(_quadratic(6, 6), ccmac.Network.grid(2, 3))),
        "ridge": _ridge,
        "logistic": _logistic,
        "flat": _flat,
        "absolute": _absolute,
        "hinge": _hinge,
        "box": _box,
        "composite": _composite,
        "stack": _stack,
        "contradiction": _contradiction,
        "uneven": _uneven,
        "smooth": _smooth,
        "long": _long,
        "apart": _apart,
        "bowls": _bowls,
    }
    return made[name]()


def _reordered(pair: Any, network: ccmac.Network) -> tuple[Any, ccmac.Network, Any]:
    problem, solution = pair
    return problem, network, solution
