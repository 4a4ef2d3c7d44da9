"""Random quadratic and linear problems with bounds: solvable, infeasible or unbounded as made.

Solvable ones are planted with a primal and a dual point, so that their value is known; degenerate,
with free and fixed entries, redundant rows, uneven scales. CVXPY's Clarabel is a second reference.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import ccmac
from ccmac.inputs import Array
from ccmac.objectives import Box, Quadratic

KINDS = ("solvable", "solvable", "solvable", "infeasible", "unbounded")


@dataclass
class Sketch:
    """Blocks of w = (x_1, ..., x_n, z): H by agents on (x_i, z), rows by blocks."""

    d: list[int]
    q: int
    A: Array  # coupled rows on all x
    B: list[Array]
    C: list[Array]
    D: list[Array]
    H: list[Array]
    lower: Array
    upper: Array

    def at(self, i: int) -> Array:
        """Places of (x_i, z) in w."""
        start = sum(self.d[:i])
        return np.r_[start : start + self.d[i], sum(self.d) : sum(self.d) + self.q]

    @property
    def size(self) -> int:
        return sum(self.d) + self.q

    def rows(self) -> Array:
        """All equations on w: coupled, then C, then D."""
        nx = sum(self.d)
        parts = []
        parts.append(np.hstack([self.A, sum(self.B)]))
        for i, C in enumerate(self.C):
            wide = np.zeros((len(C), self.size))
            wide[:, self.at(i)[: self.d[i]]] = C
            parts.append(wide)
        parts += [np.hstack([np.zeros((len(D), nx)), D]) for D in self.D]
        return np.vstack(parts)

    def problem(self, v: Array, g: Array) -> ccmac.Problem:
        """With right-hand sides v of all rows and the linear term g of w."""
        n = len(self.d)
        m = len(self.A)
        nx = sum(self.d)
        ends = np.cumsum([m, *map(len, self.C), *map(len, self.D)])[:-1]
        b, *rest = np.split(v, ends)
        agents = []
        for i in range(n):
            at = self.at(i)
            linear = g[at].copy()
            linear[self.d[i] :] /= n
            low = self.lower[at].copy()
            high = self.upper[at].copy()
            if i % 2:  # the bounds on z are told by some agents only
                low[self.d[i] :], high[self.d[i] :] = -np.inf, np.inf
            own = at[: self.d[i]]
            agent = ccmac.Agent(
                Quadratic(self.H[i], linear) + Box(low, high),
                A=self.A[:, own],
                B=self.B[i],
                b=b / n,
                C=self.C[i],
                c=rest[i],
                D=self.D[i],
                e=rest[n + i],
            )
            agents.append(agent)
        assert nx + self.q == self.size
        return ccmac.Problem(agents)


def sketch(random: np.random.Generator, linear: bool) -> Sketch:
    """Blocks of random sizes and ranks, some rows redundant, some scales uneven."""
    n = int(random.integers(2, 6))
    q = int(random.integers(0, 5))
    m = int(random.integers(1, 5))
    d = [int(random.integers(1, 8)) for _ in range(n)]
    A = random.standard_normal((m, sum(d)))
    B = [random.standard_normal((m, q)) for _ in range(n)]
    C = [random.standard_normal((int(random.integers(0, max(1, k // 2) + 1)), k)) for k in d]
    r = [int(random.integers(0, 2)) if q > 2 and i < 2 else 0 for i in range(n)]
    D = [random.standard_normal((k, q)) for k in r]
    H = []
    for k in d:
        rank = 0 if linear else int(random.integers(0, k + q + 1))
        factor = random.standard_normal((rank, k + q))
        H.append(factor.T @ factor)
    if random.random() < 0.3:  # redundant rows, in every block
        weights = random.standard_normal((1, m))
        A = np.vstack([A, weights @ A])
        B = [np.vstack([b, weights @ b]) for b in B]
        C = [np.vstack([c, 2 * c[:1]]) for c in C]
        D = [np.vstack([v, -v[:1]]) for v in D]
    size = sum(d) + q
    out = Sketch(d, q, A, B, C, D, H, np.full(size, -np.inf), np.full(size, np.inf))
    if random.random() < 0.3:
        scale = 10.0 ** random.uniform(-2, 2, len(out.A))[:, None]
        out.A = scale * out.A
        out.B = [scale * b for b in out.B]
    return out


def bounds_around(random: np.random.Generator, s: Sketch, w: Array) -> Array:
    """Bounds that w meets, many with equality, free and fixed entries among them; their prices."""
    price = np.zeros(s.size)
    for j in range(s.size):
        kind = int(random.integers(0, 7))
        width = float(random.exponential())
        if kind in (0, 1, 2):
            s.lower[j] = w[j] - width * (kind > 0)
        if kind in (1, 2, 3):
            s.upper[j] = w[j] + width * (kind < 3)
        if kind == 4 and random.random() < 0.5:
            s.lower[j] = s.upper[j] = w[j]
        active = float(s.upper[j] == w[j]) - float(s.lower[j] == w[j])
        if s.lower[j] == s.upper[j]:
            price[j] = random.standard_normal()
        elif active and random.random() < 0.7:  # else degenerate: active at no price
            price[j] = -active * random.exponential()
    return price


@dataclass(frozen=True)
class Made:
    """What a problem is by construction; value and size of a solution where it has one."""

    kind: str
    problem: ccmac.Problem
    value: float = np.nan
    size: float = np.nan


def make(seed: int) -> Made:
    """A problem of some kind."""
    random = np.random.default_rng(seed)
    kind = KINDS[int(random.integers(len(KINDS)))]
    s = sketch(random, linear=bool(random.integers(0, 2)))
    if kind == "infeasible":
        return Made(kind, _infeasible(random, s))
    w = random.standard_normal(s.size)
    nu = random.standard_normal(len(s.rows()))
    price = bounds_around(random, s, w)
    if kind == "unbounded":
        return Made(kind, _unbounded(random, s, w))
    g = s.rows().T @ nu - price
    bend = 0.0
    for i, H in enumerate(s.H):
        g[s.at(i)] += H @ w[s.at(i)]
        bend += float(w[s.at(i)] @ H @ w[s.at(i)])
    value = bend / 2 - float(g @ w)
    return Made(kind, s.problem(s.rows() @ w, g), value, float(np.linalg.norm(w)))


def _infeasible(random: np.random.Generator, s: Sketch) -> ccmac.Problem:
    """r = K'y with y'v below what the bounds allow r'w."""
    K = s.rows()
    y = random.standard_normal(len(K))
    r = K.T @ y
    reach = 0.0
    for j, push in enumerate(r):
        end = float(random.standard_normal())
        if push > 0:
            s.lower[j], s.upper[j] = end, random.choice([np.inf, end + 1.0])
        elif push < 0:
            s.upper[j], s.lower[j] = end, random.choice([-np.inf, end - 1.0])
        reach += push * end
    v = K @ random.standard_normal(s.size)
    return s.problem(v + (reach - 1.0 - y @ v) / (y @ y) * y, random.standard_normal(s.size))


def _unbounded(random: np.random.Generator, s: Sketch, w: Array) -> ccmac.Problem:
    """A direction that all rows, Hessians and bounds let pass, and along which the cost falls."""
    t = random.standard_normal(s.size)
    t[random.random(s.size) < 0.3] = 0.0
    if not t.any():
        t[0] = 1.0
    s.upper[t > 0], s.lower[t < 0] = np.inf, -np.inf
    n = len(s.d)
    nx = sum(s.d)
    for i in range(n):
        own = s.at(i)[: s.d[i]]
        along = t[s.at(i)]
        if s.C[i].size and (t[own] @ t[own]) > 0:
            s.C[i] = _across(s.C[i], t[own])
        if s.D[i].size and t[nx:].any():
            s.D[i] = _across(s.D[i], t[nx:])
        if along.any():
            P = np.eye(len(along)) - np.outer(along, along) / (along @ along)
            H = P @ s.H[i] @ P
            s.H[i] = 0.5 * (H + H.T)
    whole = _across(np.hstack([s.A, sum(s.B)]), t)
    s.A = whole[:, :nx]
    s.B = [whole[:, nx:] / n] * n
    g = random.standard_normal(s.size)
    g += (1.0 - g @ t) / (t @ t) * t
    return s.problem(s.rows() @ w, g)


def _across(rows: Array, t: Array) -> Array:
    """The rows without their part along t; what rounding leaves of a row is none."""
    left = rows - np.outer(rows @ t, t) / (t @ t)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(np.linalg.norm(left, axis=1, keepdims=True) > 1e-12 * lengths, left, 0.0)


def reference(problem: ccmac.Problem) -> tuple[str, float]:
    """(status, value) of Clarabel, through CVXPY."""
    import cvxpy as cp

    d = problem.d
    q = problem.q
    x = {i: cp.Variable(k) for i, k in d.items()}
    z = cp.Variable(q) if q else None
    cost: Any = 0.0
    rows: list[Any] = []
    coupled: Any = 0.0
    for i, agent in problem.agents.items():
        form = agent.objective.polyhedral(d[i], q)
        u = x[i] if z is None else cp.hstack([x[i], z])
        H = form.H.toarray() if hasattr(form.H, "toarray") else form.H
        cost = cost + 0.5 * cp.quad_form(u, cp.psd_wrap(H)) - form.g @ u + form.c
        for term in form.terms:
            image = term.R @ u - term.h
            if term.simplex:
                cost = cost + cp.max(image)
            else:
                cost = cost + cp.sum(cp.maximum(term.low * image, term.high * image))
        low = np.isfinite(form.lower)
        high = np.isfinite(form.upper)
        rows += [u[low] >= form.lower[low]] if low.any() else []
        rows += [u[high] <= form.upper[high]] if high.any() else []
        rows += [agent.C @ x[i] == agent.c] if problem.p[i] else []
        rows += [agent.D @ z == agent.e] if problem.r[i] else []
        if agent.A is not None:
            coupled = coupled + agent.A @ x[i]
        if agent.B is not None and z is not None:
            coupled = coupled + agent.B @ z
        if agent.b is not None:
            coupled = coupled - agent.b
    rows += [coupled == 0] if problem.m else []
    task = cp.Problem(cp.Minimize(cost), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
        task.solve(cp.CLARABEL, max_iter=200, **tight)
    return str(task.status), float(task.value)


def violation(problem: ccmac.Problem, result: ccmac.Result) -> float:
    """The largest violation of a row or bound; rows in unit length."""
    x = result.x
    z = result.z
    worst = [0.0]
    coupled = np.zeros(problem.m)
    squares = np.zeros(problem.m)
    B = np.zeros((problem.m, problem.q))
    for i, agent in problem.agents.items():
        for block, right, v in ((agent.C, agent.c, x[i]), (agent.D, agent.e, z)):
            if block is not None and len(block):
                off = np.abs(block @ v - right) / np.maximum(np.linalg.norm(block, axis=1), 1e-300)
                worst.append(float(off[np.any(block != 0, axis=1)].max(initial=0.0)))
        form = agent.objective.polyhedral(problem.d[i], problem.q)
        u = np.append(x[i], z)
        outside = np.maximum(form.lower - u, u - form.upper)
        worst.append(float(np.max(outside, initial=0.0)))
        if agent.A is not None:
            coupled = coupled + agent.A @ x[i]
            squares = squares + np.sum(agent.A**2, axis=1)
        if agent.B is not None:
            coupled = coupled + agent.B @ z
            B = B + agent.B
        coupled = coupled if agent.b is None else coupled - agent.b
    lengths = np.sqrt(squares + np.sum(B**2, axis=1))
    worst.append(float((np.abs(coupled) / np.where(lengths > 0, lengths, 1.0)).max(initial=0.0)))
    return max(worst)
