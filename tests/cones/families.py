"""Random conic problems of 2 to 6 agents whose status is known by construction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ccmac
from ccmac.cones import Cone, Nonnegative, SecondOrder, Zero
from ccmac.inputs import Array
from ccmac.objectives import Quadratic

STATUSES = ("optimal", "infeasible", "unbounded", "optimal")


@dataclass
class Part:
    """One agent's blocks, with a point's slacks s and complementary multipliers y."""

    A: Array
    B: Array
    G: Array
    H: Array
    root: Array  # the Hessian is root root'
    cones: list[Cone]
    s: Array
    y: Array


def drawn(seed: int) -> tuple[str, ccmac.Problem]:
    """(the status, the problem).

    Every fourth problem is infeasible: all columns are cancelled by multipliers that the right-hand
    sides contradict. Every fourth is unbounded: rows, cones and curvature let a direction pass
    along which the objective falls. The others have a point with complementary multipliers. Each
    sixth problem has repeated and badly scaled rows, and slacks and multipliers that are both zero.
    """
    rng = np.random.default_rng(seed)
    status = STATUSES[seed % 4]
    hard = seed % 6 == 0
    q = int(rng.integers(0, 4))
    m = int(rng.integers(1, 5))
    turned = rng.random() < 0.6
    curved = rng.random() < 0.5
    parts = [
        _part(rng, q, m, turned=turned, curved=curved, hard=hard)
        for _ in range(int(rng.integers(2, 7)))
    ]
    z = rng.standard_normal(q)
    dual = rng.standard_normal(m) if rng.random() < 0.8 else np.zeros(m)
    along = rng.standard_normal(q)
    agents = []
    for part in parts:
        x = rng.standard_normal(part.A.shape[1])
        step = rng.standard_normal(len(x))
        y = part.y
        if status == "infeasible":
            y = _inside(rng, part.cones)
            part.G -= np.outer(y, part.G.T @ y + part.A.T @ dual) / (y @ y)
            part.H -= np.outer(y, part.H.T @ y + part.B.T @ dual) / (y @ y)
        if status == "unbounded":
            _let_pass(rng, part, step, along)
        for block in (part.G, part.H, part.A):
            block[np.abs(block) < 1e-12] = 0.0  # rounding of what cancelled
        K = np.hstack([part.G, part.H])
        u = np.append(x, z)
        h = K @ u + part.s
        rows = K.T @ y + np.hstack([part.A, part.B]).T @ dual
        g = part.root @ (part.root.T @ u) + rows
        if status == "infeasible":
            h -= y * (y @ part.s + 1.0) / (y @ y)
            g = rng.standard_normal(len(u))
        if status == "unbounded":
            w = np.append(step, along)
            g += w * (1.0 + max(0.0, -(g @ w))) / (w @ w)
        b = part.A @ x + part.B @ z
        rows_of = {"G": part.G, "H": part.H if q else None, "h": h, "cones": part.cones}
        f = Quadratic(part.root @ part.root.T, g)
        agents.append(ccmac.Agent(f, A=part.A, B=part.B if q else None, b=b, **rows_of))
    return status, ccmac.Problem(agents, q=q)


def _part(
    rng: np.random.Generator, q: int, m: int, *, turned: bool, curved: bool, hard: bool
) -> Part:
    d = int(rng.integers(1, 6))
    cones: list[Cone] = [Nonnegative(int(rng.integers(1, 7)))]
    if rng.random() < 0.3:
        cones.append(Zero(1))
    if turned:
        cones += [SecondOrder(int(rng.integers(2, 6))) for _ in range(int(rng.integers(1, 3)))]
    rows = sum(cone.size for cone in cones)
    G, H = rng.standard_normal((rows, d)), rng.standard_normal((rows, q))
    A, B = rng.standard_normal((m, d)), rng.standard_normal((m, q))
    root = rng.standard_normal((d + q, max(1, (d + q) // 2))) * float(curved)
    s, y = (np.concatenate(v) for v in zip(*(_pair(rng, c, hard) for c in cones), strict=True))
    if hard:
        A[-1], B[-1] = A[0], B[0]
        scale = np.concatenate([np.full(c.size, 10 ** rng.uniform(-3, 3)) for c in cones])
        G *= scale[:, None]
        H *= scale[:, None]
        s *= scale
        y /= scale
    return Part(A, B, G, H, root, cones, s, y)


def _pair(rng: np.random.Generator, cone: Cone, hard: bool) -> tuple[Array, Array]:
    """A slack in the cone and a multiplier in its dual, with s'y = 0."""
    v = rng.standard_normal(cone.size)
    none = np.zeros(cone.size)
    if isinstance(cone, Zero):
        return none, v
    if isinstance(cone, Nonnegative):
        sizes = np.abs(v) * (rng.random(cone.size) < (0.7 if hard else 1.0))
        on = rng.random(cone.size) < 0.5
        return np.where(on, sizes, 0.0), np.where(on, 0.0, sizes)
    length = float(np.linalg.norm(v[1:]))
    edge = np.append(length, v[1:])
    deep = np.append(length + abs(v[0]), v[1:])
    mirrored = abs(v[0]) * np.append(length, -v[1:])
    pairs = [(deep, none), (none, deep), (edge, mirrored), (none, edge), (edge, none)]
    return pairs[int(rng.integers(0, 5 if hard else 3))]


def _inside(rng: np.random.Generator, cones: list[Cone]) -> Array:
    """A multiplier inside the dual cones."""
    found = []
    for cone in cones:
        v = rng.standard_normal(cone.size)
        if isinstance(cone, Nonnegative):
            v = np.abs(v)
        if isinstance(cone, SecondOrder):
            v[0] = np.linalg.norm(v[1:]) + abs(v[0])
        found.append(v)
    return np.concatenate(found)


def _let_pass(rng: np.random.Generator, part: Part, step: Array, along: Array) -> None:
    """Rows, cones and curvature that (step, along) keeps, goes into, does not see."""
    r = np.where(
        np.repeat([isinstance(c, Zero) for c in part.cones], [c.size for c in part.cones]),
        0.0,
        _inside(rng, part.cones),
    )
    size = step @ step
    part.G -= np.outer(part.G @ step + part.H @ along + r, step) / size
    part.A -= np.outer(part.A @ step + part.B @ along, step) / size
    w = np.append(step, along)
    part.root -= np.outer(w, w @ part.root) / (w @ w)
