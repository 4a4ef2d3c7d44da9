"""ccmac-check PROBLEM_DIR RESULT_DIR: is what a result claims true?

A checker that shares no code with ccmac. It reads a stored problem and the proof that
``Result.save`` or ``ccmac solve --out`` wrote, evaluates violations, signs, slopes and gaps in
exact arithmetic (all data are doubles: integers times powers of two), and says

    confirmed (exit code 0), not confirmed (1), bad input (2) or not checked (4).

With u = (x_1, ..., x_n, z), rows K u = v (or <=, >=) and F the sum of the objectives, claims are

    error       ||u - u*|| <= bound, u* the solution
    gap         F(u) - F(u*) <= gap for all solutions within ``radius`` of the start, and rows of
                length one are violated by at most tol max(1, right-hand side)
    infeasible  no solution is shorter than ``radius`` (a Farkas certificate)
    unbounded   F falls without bound along a direction (a recession certificate)

Each function that checks a claim states its proof. docs/proof-format.md has the format.
"""

import argparse
import decimal
import hashlib
import io
import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.sparse as sp

EPS = 2.0**-52
UP = 1 + 2.0**-40  # covers the rounding of a formula of a few positive floats
RANK, MASKED = 1e-12, 10.0**-5.5  # rows nearer to the span of others are dependent (masked sums)
FAR = 1e6  # solutions longer than this times the data do not count
SLOPE = 1e-8  # a fall, relative to all slopes, that counts
LARGEST = 4000  # unknowns and rows that are inverted densely
SMALL = 120  # the same, exactly
BLOCK = 1 << 20  # entries multiplied at a time
BITS = 160  # of fixed-point exponentials
NEAR = 1e-4  # a kink nearer than this may have any slope
CSR = ("data", "indices", "indptr", "shape")
FREE = {"lower": -math.inf, "upper": math.inf}
SIGNS = {"<=": 1.0, "==": 0.0, ">=": -1.0}
AGENT = r"^- file: (\w[\w.-]*)\n  sha256: .*\n  d: (\d+)\n  p: (\d+)\n  r: (\d+)$"
LOSSES = ("Logistic", "Huber", "SquaredDistance")  # of which intercepts are known


class NotChecked(Exception):
    """Nothing is said, for the reason given."""


class NotConfirmed(Exception):
    """The claim is not shown, by as much as the message says."""


class BadInput(Exception):
    """A folder that is no problem or no proof."""


CODES = {
    NotConfirmed: ("not confirmed", 1),
    BadInput: ("bad input", 2),
    NotChecked: ("not checked", 4),
}


# -- exact numbers ---------------------------------------------------------------------------------
class Exact:
    """An array of numbers v 2^e with Python integers v: sums and products lose nothing."""

    def __init__(self, v, e=0):
        self.v = np.asarray(v, dtype=object)
        self.e = e

    @classmethod
    def of(cls, values):
        """Doubles as they are."""
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise BadInput("data that are no finite numbers")
        fraction, e = np.frexp(values)
        m = np.ldexp(fraction, 53).astype(np.int64)
        low = np.where(m == 0, 1, m & -m)  # trailing zeros go: small integers multiply faster
        e = e.astype(np.int64) - 53 + np.round(np.log2(low)).astype(np.int64)
        base = int(e[m != 0].min()) if m.any() else 0
        shift = np.where(m == 0, 0, e - base).astype(object)
        return cls(np.left_shift((m // low).astype(object), shift), base)

    def at(self, e):
        """The integers for a smaller exponent."""
        return self.v if e == self.e else np.left_shift(self.v, self.e - e)

    def __add__(self, other):
        e = min(self.e, other.e)
        return Exact(self.at(e) + other.at(e), e)

    def __sub__(self, other):
        return self + Exact(-other.v, other.e)

    def __mul__(self, other):
        return Exact(self.v * other.v, self.e + other.e)

    def __getitem__(self, key):
        return Exact(self.v[key], self.e)

    def where(self, keep):
        """0 elsewhere."""
        return Exact(np.where(keep, self.v, 0), self.e)

    def sum(self):
        """Of all entries."""
        return Exact(sum(self.v.ravel().tolist()), self.e)

    def sign(self):
        """-1, 0 or 1, as floats."""
        return np.sign(self.v).astype(np.float64)

    def floats(self):
        """Rounded away from zero: upper bounds of what is positive."""
        found = [math.copysign(_up(abs(k), self.e), k) for k in self.v.ravel().tolist()]
        return np.array(found).reshape(self.v.shape)

    def norm(self):
        """An upper bound of the Euclidean norm."""
        square = sum(k * k for k in self.v.ravel().tolist())
        return _up(math.isqrt(square << 128) + 1, self.e - 64) if square else 0.0


def _up(n, e):
    """The least double >= n 2^e, or the next one."""
    drop = max(n.bit_length() - 53, 0)
    try:
        found = math.ldexp((n >> drop) + (n & ((1 << drop) - 1) > 0), e + drop)
    except OverflowError:
        return math.inf
    return math.nextafter(found, math.inf) if n and found < 1e-300 else found


def zeros(size):
    """As many zeros."""
    return Exact(np.array([0] * size, dtype=object))


def joined(parts):
    """One array after the other."""
    e = min(p.e for p in parts)
    return Exact(np.concatenate([p.at(e) for p in parts]), e)


class Matrix:
    """A sparse matrix by entries (row, column, double); entries at one place add up exactly."""

    def __init__(self, rows, columns, values, shape):
        self.rows = np.asarray(rows, dtype=np.int64)
        self.columns = np.asarray(columns, dtype=np.int64)
        self.values = np.asarray(values, dtype=np.float64)
        self.shape = shape
        self.single = len(np.unique(self.rows)) == len(self.rows)  # one entry a row at most

    @property
    def T(self):
        """The transpose."""
        return Matrix(self.columns, self.rows, self.values, self.shape[::-1])

    def take(self, keep):
        """Some of the rows, by a mask."""
        use = keep[self.rows]
        rows = (np.cumsum(keep) - 1)[self.rows[use]]
        return Matrix(rows, self.columns[use], self.values[use], (keep.sum(), self.shape[1]))

    def __matmul__(self, x):
        """The exact product."""
        order = np.argsort(self.rows, kind="stable")
        total = zeros(self.shape[0])
        for k in range(0, len(order), BLOCK):
            some = order[k : k + BLOCK]
            terms = Exact.of(self.values[some]) * x[self.columns[some]]
            places, starts = np.unique(self.rows[some], return_index=True)
            part = zeros(self.shape[0])
            part.v[places] = np.add.reduceat(terms.v, starts)
            total = total + Exact(part.v, terms.e)
        return total

    def plain(self):
        """As a sparse matrix of doubles, rounded where entries add up."""
        return sp.csr_array(
            sp.coo_array((self.values, (self.rows, self.columns)), shape=self.shape)
        )

    def lengths(self):
        """Of the rows, nearly; 1 for rows of zeros."""
        found = np.sqrt(np.asarray((self.plain() ** 2).sum(axis=1)).ravel())
        return np.where(found > 0, found, 1.0)


# -- reading ---------------------------------------------------------------------------------------
class Blocks:
    """The named arrays of an ``.npz`` and its SHA-256."""

    def __init__(self, path):
        try:
            content = path.read_bytes()
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                self.arrays = {name: archive[name] for name in archive.files}
        except Exception as error:
            raise BadInput(f"{path}: {error}") from None
        self.sha256 = hashlib.sha256(content).hexdigest()

    def matrix(self, name):
        """Dense, sparse or None."""
        if f"{name}.indptr" not in self.arrays:
            return self.arrays.get(name)
        *parts, shape = (self.arrays[f"{name}.{k}"] for k in CSR)
        found = sp.csr_array(tuple(parts), shape=tuple(int(k) for k in shape))
        found.check_format(full_check=True)
        return found

    def side(self, name, size):
        """A right-hand side; zeros where there is none."""
        found = Exact.of(self.arrays.get(name, np.zeros(size)))
        if found.v.shape != (size,):
            raise BadInput(f"{name} has shape {found.v.shape} instead of {(size,)}")
        return found

    def value(self, node):
        """Of an objective's tree: a number, an array, a matrix, a list or a tree."""
        if not isinstance(node, dict):
            return node
        [(tag, content)] = node.items()
        if tag in ("array", "csr"):
            return self.matrix(content)
        return float(content) if tag == "number" else content


def _listed(text, name):
    """The entries of a list in ``common``."""
    found = re.search(rf"^  {name}:\n((?:  - .*\n)+)", text, re.MULTILINE)
    return None if found is None else [line[4:].strip("'\"") for line in found[1].splitlines()]


class Problem:
    """A stored problem as one: rows K with senses, bounds of u and the terms of F."""

    def __init__(self, folder):
        text = (folder / "problem.yaml").read_text(encoding="utf-8")
        agents = re.findall(AGENT, text, re.M)
        n, q, m = (int(re.search(rf"^{k}: (\d+)$", text, re.M)[1]) for k in "nqm")
        if not re.match("format: ccmac-problem\nversion: [123]\n", text) or len(agents) != n:
            raise BadInput(f"{folder / 'problem.yaml'}: is not what Problem.save writes")
        sizes = [tuple(map(int, agent[1:])) for agent in agents]
        self.m = m
        self.q = q
        self.starts = np.cumsum([0, *(d for d, _, _ in sizes)])
        self.size = int(self.starts[-1]) + q
        self.z = np.arange(self.size - q, self.size)
        self.lower = np.full(self.size, -math.inf)
        self.upper = np.full(self.size, math.inf)
        self.terms = []
        self.own = []  # by agents: the first row of C_i, its rows, those of D_i
        given = _listed(text, "sense") or ["=="] * m
        head = [[n, q, m], given if set(given) - {"=="} else None, []]
        for ends, name in ((self.lower, "z_lower"), (self.upper, "z_upper")):
            found = enumerate(_listed(text, name) or [])
            known = {self.z[k]: float(v) for k, v in found if v != "null"}
            ends[list(known)] = list(known.values())
            head[2].append([v.hex() for v in ends[self.z].tolist()] if known else None)
        hashes = [json.dumps(head)]
        entries = [([], [], [])]
        right = [zeros(m)]
        senses = [given]
        row = m
        for i, (d, p, r) in enumerate(sizes):
            blocks = Blocks(folder / agents[i][0])
            hashes.append(blocks.sha256)
            if {"G", "H", "h", "cones"} & {name.split(".")[0] for name in blocks.arrays}:
                raise NotChecked(f"agent {i} has cones, which this version does not check")
            x = np.arange(self.starts[i], self.starts[i] + d)
            places = (x, 0, m), (self.z, 0, m), (x, row, p), (self.z, row + p, r)
            for name, (columns, first, rows) in zip("ABCD", places, strict=True):
                if (block := blocks.matrix(name)) is not None:
                    block = sp.coo_array(block)
                    if block.shape != (rows, len(columns)):
                        raise BadInput(f"agent {i}, block {name} has shape {block.shape}")
                    entries.append((block.row + first, columns[block.col], block.data))
            right[0] = right[0] + blocks.side("b", m)
            right += [blocks.side("c", p), blocks.side("e", r)]
            for name, count in (("C_sense", p), ("D_sense", r)):
                senses.append(np.broadcast_to(blocks.arrays.get(name, "=="), count))
            self.own.append((row, p, r))
            row += p + r
            self.bound(x, *(blocks.arrays.get(k, v) for k, v in FREE.items()))
            tree = json.loads(str(blocks.arrays["objective"]))
            self.add(blocks, tree, np.concatenate([x, self.z]), d)
        self.K = Matrix(*map(np.concatenate, zip(*entries, strict=True)), (row, self.size))
        self.right = joined(right)
        self.sense = np.array([SIGNS[s] for part in senses for s in part])
        self.limited = self.sense.any() or np.isfinite([*self.lower, *self.upper]).any()
        self.digest = hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    def bound(self, at, low, high):
        """Narrower bounds on some unknowns."""
        self.lower[at] = np.maximum(self.lower[at], low)
        self.upper[at] = np.minimum(self.upper[at], high)
        if np.isnan([*self.lower[at], *self.upper[at]]).any():
            raise BadInput("bounds that are no numbers")

    def add(self, blocks, tree, at, d):
        """The terms of an objective on the unknowns ``at``, the first d of them the agent's own."""
        kind = tree["kind"]
        state = {name: blocks.value(node) for name, node in tree["state"].items()}
        if kind == "Separable":
            for part, places in ((state["x"], at[:d]), (state["z"], at[d:])):
                if part is not None:
                    self.add(blocks, part, places, len(places))
        elif kind == "Sum":
            for part in state["parts"]:
                self.add(blocks, blocks.value(part), at, d)
        elif kind == "Intercept" and state["loss"]["kind"] in LOSSES:
            count = len(self.terms)
            self.add(blocks, state["loss"], at, d)
            for term in self.terms[count:]:  # the ridge of a loss with an intercept is zero
                term.intercept = bool(term.w.any())
        elif kind == "Box":
            self.bound(at, state["low"], state["high"])
        elif kind in KINDS:
            for name, M, c, weight, *delta in KINDS[kind](**state):
                block = sp.coo_array(sp.eye_array(len(at)) if M is None else M)
                rows = at[block.row] if name == "form" else block.row
                size = self.size if name == "form" else block.shape[0]
                if block.shape[1] != len(at):
                    raise BadInput(
                        f"an objective of {block.shape[1]} instead of {len(at)} unknowns"
                    )
                wide = Matrix(rows, at[block.col], block.data, (size, self.size))
                shift = zeros(block.shape[0]) if c is None else Exact.of(c)
                if name == "form":
                    convex(block)
                    shift = Matrix(at, 0 * at, c, (size, 1)) @ Exact.of(np.ones(1))
                self.terms.append(Term(name, wide, shift, weight, *delta))
        else:
            raise NotChecked(f"objectives of kind {kind} are not checked")


# -- objectives ------------------------------------------------------------------------------------
def _margins(M, y):
    return sp.diags_array(y) @ (sp.eye_array(len(y)) if M is None else sp.csr_array(M))


def _ridge(weight):
    return ("square", None, None, weight)


KINDS = {  # (kind of Term, M, shift, weight, delta)
    "SquaredDistance": lambda weight, centre: [("square", None, centre, weight)],
    "Quadratic": lambda H, g: [("form", H, g, 1.0)],
    "LeastSquares": lambda M, y, weight: [("square", M, y, weight)],
    "Ridge": lambda M, y, regularization, weight: [
        ("square", None if y is None else M, y, 0.0 if y is None else weight),
        _ridge(regularization),
    ],
    "Huber": lambda M, y, weight, ridge, delta: [("huber", M, y, weight, delta), _ridge(ridge)],
    "Logistic": lambda M, y, weight, ridge: [
        ("logistic", _margins(M, y), None, weight),
        _ridge(ridge),
    ],
    "Hinge": lambda M, y, weight, ridge: [
        ("hinge", _margins(M, y), np.ones(len(y)), weight),
        _ridge(ridge),
    ],
    "L1": lambda weight, centre: [("abs", None, centre, weight)],
    "ElasticNet": lambda l1, l2: [("abs", None, None, l1), _ridge(l2)],
    "MaxAffine": lambda M, c: [("max", M, -c, 1.0)],
}


class Term:
    """sum_j w_j phi(t_j) with t = M u - shift; ``kind`` says which phi.

    square t^2/2; huber t^2/2 up to |t| = delta, then straight; logistic log(1 + exp(-t)); abs |t|;
    hinge max(0, -t); max: max_j t_j; form: u'Mu/2 - shift'u, M symmetric. ``low`` and ``high`` are
    the slopes far out; kinked terms are the sup of s't over slopes s between them (max: of sum 1).
    """

    intercept = False  # of a smooth term: minimised over b, t = M u + (M 1) b - shift

    def __init__(self, kind, M, shift, weight, delta=1.0):
        self.kind = kind
        self.M = M
        self.shift = shift
        self.w = np.broadcast_to(np.asarray(weight, dtype=np.float64), M.shape[0])
        self.weight = Exact.of(self.w)
        self.delta = delta
        self.kinked = kind in ("abs", "hinge", "max")
        if (self.w < 0).any() or not delta > 0:
            raise BadInput("an objective that is not convex")
        self.high = {"abs": 1.0, "huber": delta, "max": 1.0}.get(kind, 0.0) * self.w
        self.low = {"max": 0.0}.get(kind, -1.0) * (delta if kind == "huber" else 1.0) * self.w
        self.bend = math.inf if self.kinked else 0.25 if kind == "logistic" else 1.0

    def gradient(self, u):
        """(of a smooth term, a bound on its error)."""
        t = self.M @ u - self.shift
        if self.kind == "form":
            return t, 0.0
        slopes, off = self.slopes(t)
        if self.intercept:
            slopes, off = self.fitted(t)
        return self.M.T @ slopes, off

    def fitted(self, t):
        """The slopes with the best intercept b, which lies between two where their sums differ."""
        signs = Exact.of(self.M.values[np.argsort(self.M.rows)])

        def total(b):
            return (signs * self.slopes(t + signs * Exact.of(b))[0]).sum()

        wide = 1.0
        while total(-wide).v > 0 or total(wide).v < 0:
            wide *= 2
        b = scipy.optimize.brentq(lambda b: float(total(b).floats()), -wide, wide, xtol=1e-15)
        wide = EPS * (1 + abs(b))
        while total(b - wide).v > 0 or total(b + wide).v < 0:
            wide *= 4
        slopes, off = self.slopes(t + signs * Exact.of(b))
        return slopes, off + 2 * wide * self.bend * float(np.linalg.norm(self.w)) * UP

    def slopes(self, t):
        """(w phi'(t) of a smooth term, a bound on the norm of the error)."""
        off = 0.0
        if self.kind == "huber":
            edge = Exact.of(np.full(len(self.w), self.delta))
            outside = ((t - edge).sign() > 0) * 1.0 - ((t + edge).sign() < 0)
            t = t.where(outside == 0) + edge * Exact.of(outside)
        elif self.kind == "logistic":
            t, off = sigmoid(t)
            off *= float(np.linalg.norm(self.w)) * max(1.0, float(np.linalg.norm(self.M.values)))
        return self.weight * t, off

    @property
    def quadratic(self):
        """Whether the Hessian is M'WM (or M)."""
        return self.kind in ("square", "form") and not self.intercept

    def far(self, t):
        """The value at t of the piecewise linear function that has the slopes far out."""
        if self.kind == "max":
            return Exact(max(t.v), t.e)
        return (t * Exact.of(np.where(t.sign() > 0, self.high, self.low))).sum()

    def curvature(self):
        """M'WM as a matrix of doubles, and the same of absolute values."""
        M = self.M.plain()
        W = sp.diags_array(self.w)
        return (M, abs(M)) if self.kind == "form" else (M.T @ (W @ M), abs(M).T @ (W @ abs(M)))


def sigmoid(t):
    """(-1/(1 + exp(t)) in fixed point, a bound on the error): Taylor's series, squared 8 times.

    Each of 24 terms and 8 squarings, which double what was lost before, loses a few last places.
    """
    one = 1 << BITS
    context = decimal.Context(prec=80)
    ln2 = int(context.multiply(context.ln(decimal.Decimal(2)), decimal.Decimal(one)))
    shift = t.e + BITS
    found = []
    for k in t.v.tolist():
        size = abs(k) << shift if shift >= 0 else abs(k) >> -shift
        halvings, r = divmod(size, ln2)
        total = power = one
        for j in range(1, 24):
            power = -(power * (r >> 8) >> BITS) // j
            total += power
        for _ in range(8):
            total = total * total >> BITS
        small = total >> halvings if halvings < 2 * BITS else 0  # exp(-|t|)
        found.append(-(small if k >= 0 else one) * one // (one + small))
    return Exact(np.array(found, dtype=object), -BITS), 2.0 ** (40 - BITS)


# -- a point and its multipliers -------------------------------------------------------------------
class Slope:
    """r = grad F + K'y at u exactly, but for ``off`` (exponentials) in its norm; and ``cost``.

    Where F has kinks, r holds slopes s of them that make it small: by convexity
    F(u') >= F(u) - cost + <r - K'y, u' - u> for all u', where cost = sum phi(t) - s't >= 0.
    """

    def __init__(self, problem, u, y):
        self.r = problem.K.T @ y
        self.off = 0.0
        self.cost = Exact(0)
        for term in problem.terms:
            if not term.kinked:
                gradient, off = term.gradient(u)
                self.r = self.r + gradient
                self.off += off
        floats = u.floats()
        gaps = np.minimum(floats - problem.lower, problem.upper - floats)
        inside = gaps > 1e-6 * (1 + np.abs(floats))
        for term in sorted(problem.terms, key=lambda k: not k.M.single):  # entries before rows
            if term.kinked:
                self._kinks(term, term.M @ u - term.shift, inside)

    def _kinks(self, term, t, inside):
        """Slopes that leave the least of r: entry by entry, or by least squares off bounds."""
        at = t.floats()
        most = term.kind == "max"
        s = np.zeros(len(at)) if most else np.where(at > 0, term.high, term.low)
        free = np.abs(at - (at.max() if most else 0.0)) <= NEAR * (1 + np.abs(term.shift.floats()))
        M = term.M
        if M.single and not most:
            wanted = s.copy()
            wanted[M.rows] = -self.r.floats()[M.columns] / np.where(M.values, M.values, 1.0)
            s = np.where(free, wanted, s)
        free &= term.high > term.low
        if free.any() and (most or not M.single):
            s = np.where(free, 0.0, s)
            A = M.plain()[np.flatnonzero(free)].T[np.flatnonzero(inside)].toarray()
            right = -(self.r.floats() + M.plain().T @ s)[inside]
            heavy = most * 1e3 * max(1.0, float(np.abs(A).max(initial=0.0)))  # a sum of one
            A = np.vstack([A, np.full(A.shape[1], heavy)])
            ends = term.low[free], term.high[free]
            how = "bvls" if free.sum() <= 500 else "trf"
            s[free] = scipy.optimize.lsq_linear(A, [*right, heavy], ends, how, tol=1e-15).x
        self._take(term, t, s)

    def _take(self, term, t, slopes):
        s = Exact.of(np.clip(slopes, term.low, term.high))
        if term.kind == "max":  # of sum one, exactly
            most = np.arange(len(slopes)) == np.argmax(slopes)
            s = s + Exact(most.astype(int).astype(object)) * (Exact(1) - s.sum())
            if s.sign().min() < 0:
                raise NotConfirmed("slopes of a maximum that add up to one were not found")
        self.cost = self.cost + term.far(t) - (s * t).sum()
        self.r = self.r + term.M.T @ s


def held(r, lower, upper):
    """(the bound that each entry of r pushes down to, 0 where there is none; whether there is)."""
    end = np.where(r > 0, lower, upper)
    there = np.isfinite(end) | (r == 0)
    return Exact.of(np.where(np.isfinite(end) & (r != 0), end, 0.0)), there


# -- claims without a least singular value ---------------------------------------------------------
def check_gap(problem, u, y, claim, start):
    """For every solution u* within R of the start u0 (convexity, and the signs of y)

    F(u) - F(u*) <= cost + sum_held r_j (u_j - end_j) - y'(K u - v) + <r_f, u - u0> + R ||r_f||,

    end_j the bound that r_j pushes to, r_f the entries of r that push where there is none.
    """
    if (problem.sense * y.sign() < 0).any():
        raise NotConfirmed("a multiplier of an inequality has the wrong sign")
    slope = Slope(problem, u, y)
    e = problem.K @ u - problem.right
    ends, there = held(slope.r.sign(), problem.lower, problem.upper)
    base = (
        slope.cost - (y * e).sum() + (slope.r * (u - ends.where(there) - start.where(~there))).sum()
    )
    radius = float(claim["radius"])
    lost = slope.off * (radius + (u - start).norm())
    gap = float(base.floats()) + (radius * slope.r.where(~there).norm() + lost) * UP
    if not gap <= float(claim["gap"]) * UP:
        raise NotConfirmed(
            f"the gap is at most {gap:.3g}, but {float(claim['gap']):.3g} is claimed"
        )
    lengths = problem.K.lengths()
    counts = np.abs(e.where(problem.sense * e.sign() >= 0).floats())
    scale = np.maximum(lengths, np.abs(problem.right.floats()))
    violation = float((counts / scale).max(initial=0.0)) * UP
    for ends, side in ((problem.lower, 1.0), (problem.upper, -1.0)):
        there = np.isfinite(ends)
        out = (Exact.of(ends[there]) - u[there]).floats() * side
        out = out / np.maximum(1.0, np.abs(ends[there]))
        violation = max(violation, float(out.max(initial=0.0)))
    if not violation <= float(claim["tol"]) * UP:
        raise NotConfirmed(f"rows are violated by {violation:.3g}: {claim['tol']:.3g} is claimed")
    return f"F - F* <= {gap:.3g} within {radius:.3g} of the start, violation {violation:.3g}"


def check_infeasible(problem, multipliers, claim):
    """With r = K'l and l <= 0 for <=, every solution has l'v <= r'u <= held + ||r_f|| ||u||."""
    y = multipliers.where(problem.sense * multipliers.sign() <= 0)
    r = problem.K.T @ y
    ends, there = held(-r.sign(), problem.lower, problem.upper)
    value = float(((r * ends.where(there)).sum() - (y * problem.right).sum()).floats()) * -1
    if not value > 0:
        raise NotConfirmed(f"the multipliers leave {value:.3g}, which is not positive")
    bounds = np.abs([*problem.lower, *problem.upper])
    right = float(np.linalg.norm(problem.right.floats() / problem.K.lengths()))
    reach = FAR * max(1.0, right, float(bounds[np.isfinite(bounds)].max(initial=0.0)))
    defect = r.where(~there).norm()
    radius = value / defect / UP if defect else math.inf
    asked = max(reach, float(claim["radius"] or math.inf)) if defect else reach
    if not radius >= asked * (1 - 1e-6):
        raise NotConfirmed(
            f"solutions longer than {radius:.3g} are not excluded: {asked:.3g} claimed"
        )
    return "no solution" if math.isinf(radius) else f"no solution shorter than {radius:.3g}"


def check_unbounded(problem, d):
    """Along d bounds hold, rows and curvature vanish by convention, and F falls."""
    bounded = np.isfinite(problem.lower) & (d.sign() < 0)
    if (bounded | np.isfinite(problem.upper) & (d.sign() > 0)).any():
        raise NotConfirmed("the direction leaves a bound")
    length = d.norm()
    if not 0 < length < math.inf:
        raise NotConfirmed("there is no direction")
    rows = problem.K @ d
    lengths = problem.K.lengths()
    rows = np.linalg.norm(rows.where(problem.sense * rows.sign() >= 0).floats() / lengths) / length
    rise = Exact(0)
    bends = []
    sizes = []
    steep = 0.0
    for term in problem.terms:
        if term.quadratic:
            slope = term.gradient(zeros(problem.size))[0]
            rise = rise + (slope * d).sum()
            bends.append((term.gradient(d)[0] - slope).norm())
            sizes.append(float(np.linalg.norm(term.curvature()[0].data)))
            steep += slope.norm()
        else:
            rise = rise + term.far(term.M @ d)
            most = np.maximum(np.abs(term.low), np.abs(term.high)).max(initial=0.0)
            steep += float(most * np.linalg.norm(abs(term.M.plain()) @ np.abs(d.floats()))) / length
    fall = -float(rise.floats()) / length
    bend = float(np.linalg.norm(bends)) / length
    right = max(1.0, float(np.linalg.norm(problem.right.floats() / lengths)))
    if rows > RANK or bend > RANK * float(np.linalg.norm(sizes)):
        raise NotConfirmed(f"along the direction rows change by {rows:.3g}, slopes by {bend:.3g}")
    if not fall > SLOPE * steep or fall < FAR * (right * bend + steep * rows):
        raise NotConfirmed(f"the fall {fall:.3g} is not larger than what may be rounding")
    return f"F falls by {fall:.3g} per unit"


# -- error bounds ----------------------------------------------------------------------------------
def check_error(problem, u, y, claim, dropped):
    """||u - u*|| <= bound, by the first of three ways that shows it; equations alone."""
    bound = float(claim["bound"])
    if claim["met"] and not bound <= float(claim["tol"]) * max(1.0, u.norm()) * UP:
        raise NotConfirmed(f"the bound {bound:.3g} is larger than was asked for")
    if problem.limited:
        raise NotChecked("error bounds are checked for equations alone")
    shown = math.inf
    reasons = []
    for way in (by_structure, by_system, by_rows):
        try:
            shown = min(shown, way(problem, u, y, dropped))
        except NotChecked as reason:
            reasons.append(str(reason))
        if shown <= bound * UP:
            return f"error at most {shown:.3g} ({bound:.3g} claimed)"
    if math.isinf(shown):
        raise NotChecked("; ".join(reasons))
    raise NotConfirmed(f"the error is shown to be at most {shown:.3g}, but {bound:.3g} is claimed")


class Inverse:
    """An approximate inverse R of M and of all matrices within ``off`` of it, ||I - R M|| < 1.

    M e = g has |e - p| <= (alpha |p| + what rounding did to p) / (1 - alpha), p = R g.
    """

    def __init__(self, M, off):
        try:
            self.R = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            raise NotChecked("a system is singular") from None
        self.size = float(np.linalg.norm(self.R))
        rounding = EPS * (len(M) + 2) * float(np.linalg.norm(abs(self.R) @ abs(M)))
        left = float(np.linalg.norm(np.eye(len(M)) - self.R @ M))
        self.alpha = (left + rounding + self.size * off) * (1 + 1e-9)
        if not self.alpha < 0.5:
            raise NotChecked(f"a system is too close to singular ({self.alpha:.2g})")

    def solve(self, g):
        """(p, a bound of |e - p|)."""
        p = self.R @ g
        lost = EPS * (len(g) + 2) * self.size * float(np.linalg.norm(g))
        return p, (self.alpha * float(np.linalg.norm(p)) + 2 * lost) / (1 - self.alpha) * UP


def exactly(image, g):
    """M^{-1} g of a small symmetric M, given by its exact products: elimination in integers."""
    n = len(g.v)
    if n > SMALL:
        raise NotChecked(f"a system of {n} unknowns is too close to singular")
    unit = np.eye(n, dtype=int).astype(object)
    table = joined([*(image(Exact(row)) for row in unit), g]).v.reshape(n + 1, n).T.copy()
    last = 1
    for k in range(n):
        pivots = np.flatnonzero(table[k:, k] != 0)
        if not pivots.size:
            raise NotChecked("a system is singular")
        table[[k, k + pivots[0]]] = table[[k + pivots[0], k]]
        below = table[k + 1 :, k].copy()
        table[k + 1 :] = (table[k + 1 :] * table[k, k] - np.outer(below, table[k])) // last
        last = table[k, k]
    found = [Fraction(0)] * n
    for k in reversed(range(n)):
        known = sum(table[k, j] * found[j] for j in range(k + 1, n))
        found[k] = (table[k, n] - known) / Fraction(table[k, k])
    return np.array([float(v) for v in found]) * (1 + 4 * EPS)


def definite(M, off):
    """Whether M plus anything of norm <= off is positive definite: less has a Cholesky factor.

    Its backward error is at most (n + 2) eps / (1 - (n + 2) eps) times the trace (Rump 2006).
    """
    shift = 2 * (len(M) + 3) * EPS * float(np.abs(M.diagonal()).sum()) + off
    try:
        np.linalg.cholesky(M - shift * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return True


def convex(H):
    """Refuse a matrix with eigenvalues below zero, but for 1e-9 of max(1, its size)."""
    most = max(1.0, float(abs(H).sum(axis=1).max(initial=0.0)))
    if not (H.row != H.col).any():
        shown = (H.data >= 0).all()
    elif H.shape[0] > LARGEST:
        raise NotChecked("a Hessian is too large to be found convex")
    else:
        shown = definite(H.toarray() + 1e-9 * most * np.eye(H.shape[0]), 0.0)
    if not shown:
        raise NotConfirmed("an objective is not convex")


def norm_bound(A):
    """An upper bound of ||A||: of its Gram matrix, if its Cholesky factor exists."""
    easy = float(np.linalg.norm(A.data)) * (1 + 1e-9)
    if min(A.shape) > LARGEST or not A.nnz:
        return easy
    G = (A.T @ A if A.shape[1] <= A.shape[0] else A @ A.T).toarray()
    off = 2 * EPS * (max(A.shape) + 4) * easy * easy
    top = float(np.linalg.eigvalsh(G)[-1]) * (1 + 1e-6) + off
    return math.sqrt(top) * UP if definite(top * np.eye(len(G)) - G, off) else easy


def hessian(problem):
    """(the Hessian of a quadratic F in doubles, a bound on its rounding by entries), sparse."""
    if not all(term.quadratic for term in problem.terms):
        raise NotChecked("F is not quadratic")
    parts = [term.curvature() for term in problem.terms]
    count = len(parts) + 4 + max([term.M.shape[0] for term in problem.terms], default=0)
    empty = sp.csr_array((problem.size, problem.size))
    return sum((H for H, _ in parts), empty), EPS * count * sum((H for _, H in parts), empty)


def curvatures(problem):
    """Of F: (lower bounds of the curvature in every unknown, upper ones)."""
    low = np.zeros(problem.size)
    high = np.zeros(problem.size)
    for term in problem.terms:
        form = term.kind == "form"
        weights = term.M.values if form else term.w[term.M.rows] * term.M.values**2
        if np.isinf(term.bend):
            high += math.inf if weights.any() else 0.0
        elif term.M.single and not (form and (term.M.rows != term.M.columns).any()):
            np.add.at(high, term.M.columns, weights * term.bend)
            np.add.at(low, term.M.columns, weights * term.quadratic)
        else:
            high += float(np.linalg.norm(weights) if form else weights.sum() * term.bend)
    return low * (1 - 1e-12), high * UP


def by_structure(problem, u, y, dropped):
    """z follows from x: the coupled rows are A x + beta z = b, and there are no others.

    z and y are moved by doubles until the violation rho and r on z are rounding. e = u - u* obeys

        mu |e_x|^2 <= (r_x, e_x) + (r_z, e_z) - (y - y*, rho) + cost,   e_z = (rho - A e_x) / beta,

    |y - y*| <= (L_z |e_z| + |r_z|) / beta; of quadratics (H_x + A'H_z A / beta^2) e_x = r_x up to
    as little, which is inverted.
    """
    wide = problem.size - problem.q
    on_z = problem.K.columns >= wide
    at = problem.K.columns[on_z] - wide
    if problem.m != problem.q or problem.K.shape[0] != problem.m or not problem.q:
        raise NotChecked("there is no structure")
    ones = Exact.of(np.ones(1))
    beta = Matrix(at, 0 * at, problem.K.values[on_z], (problem.q, 1)) @ ones
    if (problem.K.rows[on_z] != at).any() or len({*beta.v}) > 1 or not beta.v[0]:
        raise NotChecked("there is no structure")
    beta = float(beta.floats()[0])
    w = u
    for _ in range(2):
        step = -(problem.K @ w - problem.right).floats() / beta
        w = w + joined([zeros(wide), Exact.of(step)])
        y = y + Exact.of(-Slope(problem, w, y).r[problem.z].floats() / beta)
    slope = Slope(problem, w, y)
    rest = (problem.K @ w - problem.right).norm() / abs(beta)
    r_x = slope.r[:wide].norm() + slope.off
    r_z = slope.r[problem.z].norm() + slope.off
    low, high = curvatures(problem)
    mu = float(low[:wide].min(initial=1e300))
    L = float(high[problem.z].max())
    if not mu > 0 or (math.isinf(L) and rest):
        raise NotChecked("F is not strongly convex in x, or not smooth in z, by known formulas")
    L = L if rest else 0.0
    A = problem.K.plain()[:, :wide] / beta
    kappa = norm_bound(A) * UP
    a = r_x + kappa * (r_z + L * rest)
    f = (2 * r_z + L * rest) * rest + max(float(slope.cost.floats()), 0.0)
    on_x = (a + math.sqrt(a * a + 4 * mu * f)) / 2 / mu
    shown = math.hypot(on_x, kappa * on_x + rest)
    try:
        H, off = hessian(problem)
        cross = H[:wide][:, problem.z]
        if wide > LARGEST or cross.nnz or (H - sp.diags_array(H.diagonal()))[problem.z].nnz:
            raise NotChecked("z bends with x")
        h = sp.diags_array(H.diagonal()[problem.z])
        S = H[:wide][:, :wide] + A.T @ (h @ A)
        off = float(np.linalg.norm(off.data)) * (1 + kappa * kappa)
        off += 4 * EPS * (problem.size + 8) * float((h @ A**2).sum())
        inverse = Inverse(S.toarray(), off)
        p, away = inverse.solve(slope.r[:wide].floats())
        away += 2 * inverse.size * (EPS * r_x + kappa * (r_z + L * rest))
        on_z = float(np.linalg.norm(A @ p)) * (1 + 1e-9) + kappa * (away + EPS * wide * r_x) + rest
        shown = min(shown, math.hypot(float(np.linalg.norm(p)) + away, on_z))
    except NotChecked:
        pass
    return (shown + (w - u).norm()) * UP


def kept(problem, dropped):
    """The rows that count: not those listed, if they lie within the cut of the others' span."""
    keep = np.ones(problem.K.shape[0], dtype=bool)
    keep[: problem.m][[int(k) for k in dropped.get("coupled", [])]] = False
    for kind in ("local", "shared"):
        for i, rows in (dropped.get(kind) or {}).items():
            first, p, r = problem.own[int(i)]
            places = np.arange(first, first + p) if kind == "local" else first + p + np.arange(r)
            keep[places[[int(k) for k in rows]]] = False
    if not keep.all():
        unit = problem.K.plain().toarray() / problem.K.lengths()[:, None]
        inside = np.linalg.lstsq(unit[keep].T, unit[~keep].T, rcond=None)[0]
        apart = np.linalg.norm(unit[~keep].T - unit[keep].T @ inside, axis=0).max()
        if not apart <= (MASKED if dropped.get("summed") else RANK) * math.sqrt(len(keep)):
            raise NotConfirmed(f"a row that was dropped is {apart:.3g} from the others' span")
    return keep


def by_system(problem, u, y, dropped):
    """Quadratics: (u*, y*) solves a linear system, whose matrix is inverted; refined exactly.

    That this point is the minimiser is shown by H + K'K > 0, in units of powers of two.
    """
    H, off = hessian(problem)
    N = problem.size
    if N + problem.K.shape[0] > LARGEST:
        raise NotChecked(f"too large: {N + problem.K.shape[0]} unknowns and rows")
    keep = kept(problem, dropped)
    K = problem.K.take(keep)
    H = H.toarray()
    k = K.plain().toarray()
    top = max(float(H.diagonal().max(initial=0.0)), 1e-300)
    t = 2.0 ** -np.round(np.log2(np.maximum(H.diagonal(), 1e-8 * top)) / 2)
    tau = 2.0 ** -np.round(np.log2(np.maximum(np.linalg.norm(k * t, axis=1), 1e-300)))
    scale = np.concatenate([t, tau])
    corner = np.zeros((len(k), len(k)))
    M = np.block([[H, k.T], [k, corner]]) * scale[:, None] * scale
    sizes = EPS * (problem.K.shape[0] + 4) * np.abs(k)  # of entries that were added up
    off = np.block([[off.toarray(), sizes.T], [sizes, corner]]) * scale[:, None] * scale
    off = float(np.linalg.norm(off)) * UP
    S = M[:N, :N] + M[N:, :N].T @ M[N:, :N]
    size = float(np.linalg.norm(M[N:, :N])) + 1
    if not definite(S, 3 * size * off + EPS * (len(M) + 4) * size * size):
        raise NotChecked("F may be flat along the equations, as far as doubles can tell")
    right = problem.right[keep]
    units = Exact.of(scale)

    def residual(w, dual, v):
        slope = sum((term.gradient(w)[0] for term in problem.terms), K.T @ dual)
        return units * joined([slope, K @ w - v])

    s = joined([u, y[keep]])
    try:
        inverse = Inverse(M, off)
        shown = math.inf
        for _ in range(20):
            rest = residual(s[:N], s[N:], right)
            p, away = inverse.solve(rest.floats())
            left = np.linalg.norm(t * p[:N]) * UP + t.max(initial=0.0) * away
            before = shown
            shown = min(shown, ((s[:N] - u).norm() + float(left)) * UP)
            s = s + Exact.of(-p) * units
            if shown > 0.5 * before:
                break
    except NotChecked:
        zero = residual(zeros(N), zeros(len(k)), zeros(len(k)))

        def image(v):
            return residual((units * v)[:N], (units * v)[N:], zeros(len(k))) - zero

        p = exactly(image, residual(u, s[N:], right))
        shown = float(np.linalg.norm(t * p[:N])) * UP
    return shown


def by_rows(problem, u, y, dropped):
    """With mu and L of F, delta >= the distance from the rows, r = grad F + K'y:

    error <= (b + sqrt(b^2 + 4 |r| delta / mu)) / 2,  b = |r| / mu + sqrt(L / mu) delta,

    delta^2 = e'(K K')^{-1} e with e = K u - v, K K' inverted.
    """
    low, high = curvatures(problem)
    mu = float(low.min(initial=1e300))
    L = float(high.max(initial=0.0))
    if not (mu > 0 and math.isfinite(L)):
        raise NotChecked("F is not smooth and strongly convex by the known formulas")
    if problem.K.shape[0] > LARGEST:
        raise NotChecked(f"too large: {problem.K.shape[0]} rows")
    keep = kept(problem, dropped)
    K = problem.K.take(keep)
    slope = Slope(problem, u, y)
    delta = 0.0
    if keep.any():
        scale = 2.0 ** -np.round(np.log2(K.lengths()))
        k = sp.diags_array(scale) @ K.plain()
        rounding = 4 * EPS * (problem.size + keep.size) * float(np.linalg.norm(k.data)) ** 2
        units = Exact.of(scale)
        e = units * (K @ u - problem.right[keep])
        try:
            p, away = Inverse((k @ k.T).toarray(), rounding).solve(e.floats())
        except NotChecked:
            p, away = exactly(lambda v: units * (K @ (K.T @ (units * v))), e), 0.0
        delta = math.sqrt(e.norm() * (float(np.linalg.norm(p)) + away)) * UP
    r = slope.r.norm() + slope.off
    b = r / mu + math.sqrt(L / mu) * delta
    return (b + math.sqrt(b * b + 4 * r * delta / mu)) / 2 * UP


# -- a proof ---------------------------------------------------------------------------------------
class Proof(Blocks):
    """``proof.json`` and the arrays that it names."""

    def __init__(self, folder):
        self.head = json.loads((folder / "proof.json").read_text(encoding="utf-8"))
        if self.head["format"] != "ccmac-proof" or self.head["version"] != 1:
            raise BadInput(f"{folder / 'proof.json'}: is no proof of version 1")
        self.arrays = {}
        for name in self.head["files"]:
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise BadInput(f"{name!r} is no plain file name")
            self.arrays |= Blocks(folder / name).arrays

    def joined(self, names, needed):
        """Arrays one after the other, of their sizes; zeros where one is missing, if it may be."""
        parts = []
        for name, size in names:
            if needed and size and name not in self.arrays:
                raise NotChecked(f"the proof has no {name}")
            found = self.arrays.get(name, ())
            parts.append(self.side(name, size) if len(found) else zeros(size))
        return joined(parts)

    def point(self, problem, prefix="", needed=True):
        """(x_1, ..., x_n, z)."""
        names = [(f"{prefix}x{i}", d) for i, d in enumerate(np.diff(problem.starts).tolist())]
        return self.joined([*names, (f"{prefix}z", problem.q)], needed)

    def multipliers(self, problem, prefix="", needed=True):
        """Of all rows."""
        names = [(f"{prefix}coupled", problem.m)]
        for i, (_, p, r) in enumerate(problem.own):
            names += [(f"{prefix}local{i}", p), (f"{prefix}shared{i}", r)]
        return self.joined(names, needed)

    def check(self, problem, claim):
        """One claim, in words."""
        if claim["kind"] == "infeasible":
            return check_infeasible(problem, self.multipliers(problem, "farkas.", False), claim)
        if claim["kind"] == "unbounded":
            return check_unbounded(problem, self.point(problem, "direction."))
        u = self.point(problem)
        y = self.multipliers(problem)
        if claim["kind"] == "gap":
            return check_gap(problem, u, y, claim, self.point(problem, "start.", needed=False))
        if claim["kind"] == "error":
            return check_error(problem, u, y, claim, self.head.get("dropped") or {})
        raise BadInput(f"{claim['kind']!r} is no kind of claim")


def check(problem_folder, result_folder):
    """What is confirmed, in words; else NotConfirmed, NotChecked or BadInput with the reason."""
    try:
        proof = Proof(Path(result_folder))
        claims = [claim for claim in proof.head["claims"] if claim["kind"] != "reference"]
        if not claims:
            raise NotChecked(f"a result that is {proof.head.get('status')} here claims nothing")
        problem = Problem(Path(problem_folder))
        if proof.head.get("problem") != problem.digest:
            raise NotConfirmed("the proof is about another problem")
        words = [proof.check(problem, claims[0])]  # what the status rests on
        for claim in claims[1:]:
            try:
                words.append(proof.check(problem, claim))
            except NotChecked as reason:
                words.append(f"{claim['kind']} not checked: {reason}")
    except (OSError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise BadInput(f"{type(error).__name__}: {error}") from None
    return "; ".join(words)


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="ccmac-check", description=__doc__.split("\n\n")[0])
    parser.add_argument("problem", help="a folder that Problem.save wrote")
    parser.add_argument("result", help="a folder that Result.save or ccmac solve --out wrote")
    options = parser.parse_args(arguments)
    try:
        print("confirmed:", check(options.problem, options.result))
    except tuple(CODES) as reason:
        status, code = CODES[type(reason)]
        print(f"{status}: {reason}")
        return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
