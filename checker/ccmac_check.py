"""ccmac-check PROBLEM_DIR RESULT_DIR: is what a result claims true?

A checker that shares no code with ccmac. It reads a stored problem and a stored result with its
proof, evaluates them in fractions (all data are doubles, and a double is one), and says
confirmed (exit code 0), not confirmed (1), bad input (2) or not checked (4).

With u = (x_1, ..., x_n, z), rows K u = v (or <=, >=, or v - K u in a cone) and F the sum of the
objectives, claims are

    error       ||u - u*|| <= bound, u* the solution
    gap         F(u) - F(u*) <= gap for all solutions within ``radius`` of the start, and rows of
                length one are violated by at most tol max(1, right-hand side)
    infeasible  no solution is shorter than ``radius`` (a Farkas certificate)
    unbounded   F falls without bound along a direction (a recession certificate)

Each function that checks a claim states its proof. docs/proof-format.md has the format.
"""

import argparse
import hashlib
import io
import json
import math
import re
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import lsq_linear
from scipy.sparse.linalg import splu

EPS = 2.0**-52
UP = 1 + 2.0**-40  # covers the rounding of a formula of a few positive floats
RANK = 1e-12  # rows nearer to the span of others are dependent
MASKED = 10.0**-5.5  # the same, where only sums of squares were known
FAR = 1e6  # solutions longer than this times the data do not count
SLOPE = 1e-8  # a fall, relative to all slopes, that counts
NEAR = 1e-4  # a kink nearer than this may have any slope
LARGEST = 4000  # rows or unknowns of dense matrices
STEPS = 12  # of Newton's method
CODES = {"confirmed": 0, "not confirmed": 1, "bad input": 2, "not checked": 4}
SENSES = {"<=": 1, "==": 0, ">=": -1, "nonnegative": 1, "zero": 0, "second-order": 0}
AGENT = r"^- file: (\w[\w.-]*)\n  sha256: (\w+)\n  d: (\d+)\n  p: (\d+)\n  r: (\d+)$"


class Verdict(Exception):
    """(a word of ``CODES``, why)."""


# -- fractions -------------------------------------------------------------------------------------
def exact(values):
    """A vector of doubles as fractions."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise Verdict("bad input", "data that are no finite numbers")
    return np.array([Fraction(v) for v in values.tolist()], dtype=object)


def above(x):
    """As doubles, away from zero: upper bounds of sizes."""
    near = ((v.numerator / v.denominator, v) for v in x)
    return np.array([math.nextafter(f, math.copysign(math.inf, v)) if v else 0.0 for f, v in near])


def integers(x):
    """Fractions over one denominator, a power of two: (numerators, denominator)."""
    below = max((v.denominator for v in x), default=1)
    return np.array([v.numerator * (below // v.denominator) for v in x], dtype=object), below


def norm(x):
    """An upper bound of the Euclidean norm."""
    whole, below = integers(x)
    square = Fraction(int((whole * whole).sum()), below**2)
    return math.nextafter(math.sqrt(above([square])[0]), math.inf) if square else 0.0


def size(M):
    """An upper bound of the norm of a matrix or vector of doubles."""
    return float(np.linalg.norm(M.data if sp.issparse(M) else M)) * UP


def product(M, x):
    """M x for a matrix in coordinates: in integers, as denominators are powers of two."""
    fraction, e = np.frexp(M.data)
    least = int(e.min(initial=0))
    entries = np.ldexp(fraction, 53).astype(np.int64).astype(object) << (e - least).astype(object)
    whole, below = integers(x)
    found = np.zeros(M.shape[0], dtype=object)
    np.add.at(found, M.row, entries * whole[M.col])  # entries at one place add up
    return found * (Fraction(2) ** (least - 53) / below)


def by_decimals(f, t):
    """f of every entry, with an error below 2^-140, relative where f is above one.

    The exponentials of ``decimal`` are correctly rounded; 60 digits are asked for.
    """
    with localcontext(prec=60):
        cut = (max(-5000, min(5000, v)) for v in t)
        found = [round(f(Decimal(v.numerator) / v.denominator) * 2**160) for v in cut]
    return np.array(found, dtype=object) * Fraction(1, 2**160)


def lengths(M):
    """Of the rows, nearly; 1 for rows of zeros."""
    found = np.sqrt(np.asarray((M.tocsr() ** 2).sum(axis=1)).ravel())
    return np.where(found > 0, found, 1.0)


# -- reading ---------------------------------------------------------------------------------------
class Blocks:
    """The named arrays of ``.npz`` files."""

    def __init__(self, folder, files):
        self.arrays = {}
        for name, sha256 in files:
            content = (folder / name).read_bytes()
            if Path(name).name != name or hashlib.sha256(content).hexdigest() != sha256:
                raise Verdict("bad input", f"{name} is not the file that was saved")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                self.arrays |= {key: archive[key] for key in archive.files}

    def matrix(self, name):
        """Dense, sparse or None."""
        if f"{name}.indptr" not in self.arrays:
            return self.arrays.get(name)
        parts = (self.arrays[f"{name}.{k}"] for k in ("data", "indices", "indptr"))
        found = sp.csr_array(tuple(parts), self.arrays[f"{name}.shape"].tolist())
        found.check_format(full_check=True)
        return found

    def decoded(self, node):
        """What a node of an objective's tree stands for."""
        [(tag, content), *_] = node.items()
        kinds = {"array": self.matrix, "csr": self.matrix, "number": float}
        kinds |= {"list": list, "objective": dict}
        return kinds[tag](content) if tag in kinds else node

    def vector(self, places, count, prefix=""):
        """One made of arrays, by their names and places; zeros where one is missing or empty."""
        return self.added(np.zeros(count, dtype=object), places, prefix)

    def added(self, found, places, prefix=""):
        """The same, to another one."""
        for name, at in places.items():
            part = self.arrays.get(prefix + name, np.zeros(0))
            if part.size:
                found[at] += exact(part.reshape(at.shape))
        return found


class Problem:
    """A stored problem: rows K u = v with senses, bounds, and F = u'Hu/2 - g'u + terms of M u."""

    def __init__(self, folder):
        text = (folder / "problem.yaml").read_text(encoding="utf-8")
        agents = re.findall(AGENT, text, re.MULTILINE)
        n, q, m = (int(re.search(rf"^{k}: (\d+)$", text, re.MULTILINE)[1]) for k in "nqm")
        if not re.match("format: ccmac-problem\nversion: [123]\n", text) or len(agents) != n:
            raise Verdict("bad input", "problem.yaml is not what Problem.save writes")

        def listed(name, missing):
            found = re.search(rf"^  {name}:\n((?:  - .*\n)+)", text, re.MULTILINE)
            lines = found[1].splitlines() if found else [f"  - {missing}"]
            return np.array([line[4:].strip("'\"").replace("null", missing) for line in lines])

        self.digest = hashlib.sha256(text.encode()).hexdigest()
        starts = np.cumsum([0, *(int(agent[2]) for agent in agents)])
        self.size = int(starts[-1]) + q
        self.lower = np.full(self.size, -math.inf)
        self.upper = np.full(self.size, math.inf)
        z = np.arange(self.size - q, self.size)
        self.bound(
            z, listed("z_lower", "-inf").astype(float), listed("z_upper", "inf").astype(float)
        )
        self.columns = {"z": z}  # places in u, by names
        self.rows = {}  # places in K u, by names
        self.second = []  # those of second-order cones
        self.sense = np.zeros(0)
        self.terms = []
        self.shift = exact([])
        self.g = exact(np.zeros(self.size))
        self.blocks = {"K": [], "H": [], "M": []}
        sides = []
        coupled = self.new_rows("coupled", m, listed("sense", "=="))
        for i, (file, sha256, d, p, r) in enumerate(agents):
            stored = Blocks(folder, [(file, sha256)])
            get = stored.arrays.get
            x = self.columns[f"x{i}"] = np.arange(starts[i], starts[i] + int(d))
            local = self.new_rows(f"local{i}", int(p), get("C_sense", "=="))
            shared = self.new_rows(f"shared{i}", int(r), get("D_sense", "=="))
            parts = get("cones.size", np.zeros(0, dtype=int))
            kinds = get("cones.kind", np.zeros(0, dtype=str))
            cones = self.new_rows(f"cones{i}", int(parts.sum()), np.repeat(kinds, parts))
            for kind, at in zip(kinds, np.split(cones, np.cumsum(parts)[:-1]), strict=False):
                self.second += [at] if kind == "second-order" else []
            rows = (coupled, coupled, local, shared, cones, cones)
            for name, at, columns in zip("ABCDGH", rows, (x, z) * 3, strict=True):
                self.put("K", stored.matrix(name), at, columns)
            sides.append((stored, {"b": coupled, "c": local, "e": shared, "h": cones}))
            self.bound(x, get("lower", -math.inf), get("upper", math.inf))
            tree = json.loads(str(get("objective")), object_hook=stored.decoded)
            self.add(tree, np.concatenate([x, z]), int(d))
        count = len(self.sense)
        self.v = np.zeros(count, dtype=object)
        for stored, places in sides:
            stored.added(self.v, places)
        self.K = self.matrix("K", count)
        self.H = self.matrix("H", self.size)
        self.M = self.matrix("M", len(self.shift))
        self.unit = lengths(self.K)
        for rows in self.second:  # alike in a cone
            self.unit[rows] = self.unit[rows].max()

    def new_rows(self, name, count, senses):
        """The places of more rows."""
        rows = self.rows[name] = np.arange(count) + len(self.sense)
        self.sense = np.append(self.sense, [SENSES[s] for s in np.broadcast_to(senses, count)])
        return rows

    def put(self, matrix, block, rows, columns):
        """A block, if there is one."""
        if block is not None:
            M = sp.coo_array(block)
            self.blocks[matrix].append((M.data, rows[M.row], columns[M.col]))

    def matrix(self, name, rows):
        """All of its blocks, in coordinates."""
        nothing = (np.zeros(0), np.zeros(0, dtype=int), np.zeros(0, dtype=int))
        values, *places = map(np.concatenate, zip(nothing, *self.blocks[name], strict=True))
        return sp.coo_array((values, tuple(places)), (rows, self.size))

    def bound(self, at, low, high):
        """Narrower bounds on some unknowns."""
        self.lower[at] = np.maximum(self.lower[at], low)
        self.upper[at] = np.minimum(self.upper[at], high)

    def add(self, tree, at, d, intercept=False):
        """The terms of an objective on the unknowns ``at``, the first d of them the agent's own."""
        kind = tree["kind"]
        state = tree["state"]
        if kind == "Separable":
            for part, places in ((state["x"], at[:d]), (state["z"], at[d:])):
                if part is not None:
                    self.add(part, places, len(places))
        elif kind == "Sum":
            for part in state["parts"]:
                self.add(part, at, d)
        elif kind == "Box":
            self.bound(at, state["low"], state["high"])
        elif kind == "Quadratic":
            self.put("H", state["H"], at, at)
            self.g[at] += exact(state["g"])
            convex(sp.coo_array(state["H"]))
        elif kind == "Intercept" and state["loss"]["kind"] in FITTED:
            self.add(state["loss"], at, d, intercept=True)
        elif kind in KINDS:
            phi, *names = KINDS[kind]
            shift, weight, ridge = (state.get(name) for name in names)
            if kind != "Ridge" or shift is not None:
                self.term(state.get("M"), shift, at, phi, weight, state, intercept)
            if ridge:
                self.term(None, None, at, "square", ridge)
        else:
            raise Verdict("not checked", f"objectives of kind {kind} are not checked")

    def term(self, M, shift, at, phi, weight, state=None, intercept=False):
        """One more term of t = M u - shift (of tweedie and max: + shift)."""
        block = sp.eye_array(len(at)) if M is None else M
        rows = np.arange(block.shape[0]) + len(self.shift)
        start = exact(np.broadcast_to(0.0 if shift is None else shift, len(rows)))
        self.put("M", block, rows, at)
        self.shift = np.append(self.shift, -start if phi in ("tweedie", "max") else start)
        self.terms.append(Term(phi, rows, weight, state or {}, intercept))

    def signed(self, y):
        """The nearest multipliers with the signs of their rows, or in a second-order cone."""
        found = np.where(self.sense * np.sign(y) >= 0, y, 0)
        for head, *rest in self.second:
            if y[head] < 0 or y[head] ** 2 < (y[rest] ** 2).sum():
                found[head] = Fraction(norm(y[rest]))
        return found

    def violations(self, e, right):
        """Where K u - v = e, over lengths of rows or ``right``; of a cone how far it is outside."""
        found = np.abs(above(np.where(self.sense * np.sign(e) >= 0, e, 0)))
        scale = np.maximum(self.unit, right)
        for rows in self.second:
            found[rows] = max(0.0, norm(e[rows[1:]]) + float(above(e[rows[:1]])[0]))
            scale[rows] = scale[rows].max()
        return found / scale

    def image(self, u):
        """t = M u - shift."""
        return product(self.M, u) - self.shift

    def hessian(self, bends):
        """H + M' diag(bends) M, rounded."""
        M = self.M.tocsr()
        return self.H.tocsr() + M.T @ sp.diags_array(bends) @ M

    def squares(self):
        """The weights of rows of M that are squared, 0 of others."""
        return np.concatenate([np.zeros(0), *(k.quadratic * k.w for k in self.terms)])


# -- objectives ------------------------------------------------------------------------------------
FITTED = ("Logistic", "Huber", "SquaredDistance", "Tweedie")  # losses that may have intercepts
KINDS = {  # (phi of Term, names of shift, weight and ridge)
    "SquaredDistance": ("square", "centre", "weight", None),
    "LeastSquares": ("square", "y", "weight", None),
    "Ridge": ("square", "y", "weight", "regularization"),
    "Huber": ("huber", "y", "weight", "ridge"),
    "Logistic": ("logistic", None, "weight", "ridge"),
    "Tweedie": ("tweedie", "offset", "weight", "ridge"),
    "Hinge": ("hinge", "y", "weight", "ridge"),
    "L1": ("abs", "centre", "weight", None),
    "ElasticNet": ("abs", None, "l1", "l2"),
    "MaxAffine": ("max", "c", None, None),
}


class Term:
    """sum_j w_j phi(t_j) over the ``rows`` of t = M u - shift; with ``intercept``: min_b at t + b.

    square t^2/2; huber t^2/2 up to |t| = delta, then straight; logistic log(1 + exp(-y t)); tweedie
    half the deviance of exp(t) from y; abs |t|; hinge max(0, -y t); max: max_j t_j. ``low`` and
    ``high`` are the slopes far out. Kinked terms are the sup of s't over s between them (max: of
    sum 1).
    """

    def __init__(self, phi, rows, weight, state, intercept):
        self.phi = phi
        self.rows = rows
        self.w = np.broadcast_to(1.0 if phi == "max" else np.asarray(weight, float), len(rows))
        self.y = state.get("y")
        self.more = state.get("delta", state.get("power", 1.0))
        self.intercept = intercept
        self.kinked = phi in ("abs", "hinge", "max")
        self.quadratic = phi == "square" and not intercept
        labels = phi != "hinge" or (np.abs(self.y) == 1).all()
        if (self.w < 0).any() or not self.more > 0 or not labels:
            raise Verdict("bad input", "an objective that is not convex")
        up = {"abs": 1.0, "max": 1.0, "huber": self.more}.get(phi, 0.0)
        down = {"abs": -1.0, "max": 0.0, "huber": -self.more}.get(phi, 0.0)
        if phi in ("hinge", "logistic"):
            up = np.maximum(-self.y, 0)
            down = np.minimum(-self.y, 0)
        self.high = up * self.w
        self.low = down * self.w

    def slopes(self, t):
        """(w phi'(t) of a smooth term, a bound on the norm of its error)."""
        w = exact(self.w)
        if self.phi == "square":
            return w * t, 0.0
        if self.phi == "huber":
            return w * np.clip(t, -Fraction(self.more), Fraction(self.more)), 0.0
        off = 2.0**-130 * size(self.w)
        y = exact(self.y)
        if self.phi == "logistic":
            return -w * y * by_decimals(lambda v: 1 / (1 + v.exp()), y * t), off
        a = Fraction(2.0 - self.more)
        with np.errstate(divide="ignore"):
            low = np.where(self.y > 0, np.log(self.y) - 4, -490)  # beyond, a parabola goes on
        if (t > math.log(self.y.max()) + 4).any() or (t < low).any() or a < 0:
            raise Verdict("not checked", "means are far from what was observed")
        mean = by_decimals(Decimal.exp, a * t)
        other = y * by_decimals(Decimal.exp, (a - 1) * t)
        return w * (mean - other), off * (1 + norm(mean) + norm(other))

    def bends(self, t):
        """w phi''(t) of a smooth term, nearly."""
        if self.phi == "square":
            return self.w
        h = Fraction(1, 2**20)
        return above((self.slopes(t + h)[0] - self.slopes(t)[0]) / h)

    def fitted(self, t):
        """(the best intercept, nearly; how far it may be off); zeros where there is none.

        By Newton's method; the best lies between two at which the sums of slopes differ in sign.
        """
        b = Fraction(0)
        for _ in range(50 * self.intercept):
            bend = max(self.bends(t + b).sum(), 1e-3 * self.w.sum())
            step = float(self.slopes(t + b)[0].sum()) / bend
            b = Fraction(float(b) - step)
            if abs(step) <= 4 * EPS * (1 + abs(b)):
                break
        for k in range(40 * self.intercept):
            wide = Fraction(EPS) * (1 + abs(b)) * 4**k
            (low, off), (high, _) = self.slopes(t + b - wide), self.slopes(t + b + wide)
            if low.sum() + len(t) * Fraction(off) <= 0 <= high.sum() - len(t) * Fraction(off):
                return b, wide
        if self.intercept:
            raise Verdict("not checked", "an intercept was not found")
        return b, b

    def far(self, t):
        """The value at t of the piecewise linear function that has the slopes far out."""
        if self.phi == "max":
            return max(t)
        return (t * exact(np.where(t > 0, self.high, self.low))).sum()

    def kinks(self, M, t, near, left):
        """Slopes of a kinked term, any where t is ``near`` a kink: M's is to be ``left`` nearly.

        Entry by entry where rows of M have one, else by least squares.
        """
        most = self.phi == "max"
        s = np.zeros(len(t)) if most else np.where(t > 0, self.high, self.low)
        free = (np.abs(t - most * t.max()) <= near) & (self.high > self.low)
        if not most and (np.diff(M.indptr) == 1).all():
            s = np.where(free, left[M.indices] / M.data, s)
        elif free.any():
            s[free] = 0.0
            inside = np.flatnonzero(np.isfinite(left))
            A = M[np.flatnonzero(free)][:, inside].toarray().T
            heavy = most * 1e3 * max(1.0, float(np.abs(A).max(initial=0.0)))  # a sum of one
            wanted = np.append((left - M.T @ s)[inside], heavy)
            A = np.vstack([A, np.full(A.shape[1], heavy)])
            how = "bvls" if free.sum() <= 500 else "trf"
            ends = (self.low[free], self.high[free])
            s[free] = lsq_linear(A, wanted, ends, how, tol=1e-15).x
        s = exact(np.clip(s, self.low, self.high))
        if most:
            s[np.argmax(s)] += 1 - s.sum()
            if s.min() < 0:
                raise Verdict("not confirmed", "no slopes of a maximum add up to one")
        return s


def support(problem, u, K, y):
    """(r, cost, off): F(u') >= F(u) - cost + <r + e - K'y, u' - u> for all u', some ||e|| <= off.

    r = grad F + K'y where F is smooth. Where it has kinks, r holds slopes s of them that make it
    small, and cost = sum phi(t) - s't >= 0.
    """
    t = problem.image(u)
    s = 0 * t
    off = 0.0
    for term in problem.terms:
        if not term.kinked:
            b, wide = term.fitted(t[term.rows])
            s[term.rows], lost = term.slopes(t[term.rows] + b if b else t[term.rows])
            off += lost + 2 * float(wide) * size(term.w)
    r = product(problem.H, u) - problem.g + product(problem.M.T, s) + product(K.T, y)
    kinked = [term for term in problem.terms if term.kinked]
    if not kinked:
        return r, Fraction(0), off * max(1.0, size(problem.M))
    at = above(u)
    inside = np.minimum(at - problem.lower, problem.upper - at) > 1e-6 * (1 + np.abs(at))
    near = NEAR * (1 + np.abs(above(problem.shift)))
    M = problem.M.tocsr()
    cost = Fraction(0)
    for term in sorted(kinked, key=lambda k: M[k.rows].nnz > len(k.rows)):  # entries come first
        rows = term.rows
        left = np.where(inside | (M[rows].nnz == len(rows)), -above(r), math.nan)
        s = 0 * t
        s[rows] = term.kinks(M[rows], above(t[rows]), near[rows], left)
        cost += term.far(t[rows]) - (s * t).sum()
        r = r + product(problem.M.T, s)
    return r, cost, off * max(1.0, size(problem.M))


# -- claims ----------------------------------------------------------------------------------------
def held(r, problem):
    """(the bound that each entry of r pushes down to, 0 where there is none; whether there is)."""
    end = np.where(r > 0, problem.lower, problem.upper)
    there = np.isfinite(end) | (r == 0)
    return exact(np.where(np.isfinite(end) & (r != 0), end, 0.0)), there


def check_gap(problem, proof, claim):
    """For every solution u* within R of the start u0 (convexity, and the signs of y)

    F(u) - F(u*) <= cost + sum_held r_j (u_j - end_j) - y'(K u - v) + <r_f, u - u0> + R ||r_f||,

    end_j the bound that r_j pushes to, r_f the entries of r that push where there is none.
    """
    u = proof.vector(problem.columns, problem.size)
    start = proof.vector(problem.columns, problem.size, "start.")
    y = problem.signed(proof.vector(problem.rows, len(problem.v)))
    r, cost, off = support(problem, u, problem.K, y)
    e = product(problem.K, u) - problem.v
    ends, there = held(r, problem)
    base = cost - (y * e).sum() + (r * (u - np.where(there, ends, start))).sum()
    lost = norm(r[~there]) * claim["radius"] + off * (claim["radius"] + norm(u - start))
    gap = float(above([base])[0]) + lost * UP
    if not gap <= claim["gap"] * UP:
        raise Verdict("not confirmed", f"the gap is at most {gap:.3g}, {claim['gap']:.3g} claimed")
    out = [problem.violations(e, np.abs(above(problem.v)))]
    for end, side in ((problem.lower, 1), (problem.upper, -1)):
        at = np.isfinite(end)
        out.append(above(side * (exact(end[at]) - u[at])) / np.maximum(1, np.abs(end[at])))
    violation = float(np.concatenate(out).max(initial=0.0)) * UP
    if not violation <= claim["tol"] * UP:
        raise Verdict("not confirmed", f"rows are violated by {violation:.3g}")
    return f"F - F* <= {gap:.3g}, violation {violation:.3g}"


def check_infeasible(problem, proof, claim):
    """With y = -multipliers and r = K'y, every solution has held - ||r_f|| ||u|| <= r'u <= y'v."""
    y = problem.signed(-proof.vector(problem.rows, len(problem.v), "farkas."))
    r = product(problem.K.T, y)
    ends, there = held(r, problem)
    value = float((r * np.where(there, ends, 0)).sum() - (y * problem.v).sum()) / UP
    if not value > 0:
        raise Verdict("not confirmed", f"the multipliers leave {value:.3g}, which is not positive")
    bounds = np.abs([*problem.lower, *problem.upper])
    right = size(above(problem.v) / problem.unit)
    reach = FAR * max(1.0, right, float(bounds[np.isfinite(bounds)].max(initial=0.0)))
    defect = norm(r[~there])
    if not defect:
        return "no solution"
    radius = value / defect / UP
    if not radius >= max(reach, claim["radius"] or math.inf) * (1 - 1e-6):
        raise Verdict("not confirmed", f"solutions longer than {radius:.3g} are not excluded")
    return f"no solution shorter than {radius:.3g}"


def check_unbounded(problem, proof, _):
    """Along d bounds hold and F falls, for which w and y would have to be longer than FAR data.

    A minimiser w with multipliers y has fall <= ||w|| ||H d|| + ||y|| ||K d||.
    """
    d = proof.vector(problem.columns, problem.size, "direction.")
    bounded = np.isfinite(problem.lower) & (d < 0) | np.isfinite(problem.upper) & (d > 0)
    length = norm(d)
    if bounded.any() or not length:
        raise Verdict("not confirmed", "the direction leaves a bound, or is none")
    along = product(problem.M, d)
    weights = problem.squares()
    slope = -problem.g - product(problem.M.T, exact(weights) * problem.shift)
    rise = (slope * d).sum()
    steep = norm(slope)
    for term in problem.terms:
        if term.phi == "tweedie":
            raise Verdict("not checked", "how means fall far out is not checked")
        if not term.quadratic:
            rise += term.far(along[term.rows])
            most = float(np.maximum(np.abs(term.low), np.abs(term.high)).max())
            steep += most * norm(along[term.rows]) / length
    fall = -float(above([rise])[0]) / length
    bend = norm(product(problem.H, d) + product(problem.M.T, exact(weights) * along)) / length
    rows = size(problem.violations(product(problem.K, d), 0.0)) / length
    right = max(1.0, size(above(problem.v) / problem.unit))
    if not fall > SLOPE * steep or fall < FAR * (right * bend + steep * rows):
        why = f"the fall {fall:.3g} is too small: rows change by {rows:.3g}, slopes by {bend:.3g}"
        raise Verdict("not confirmed", why)
    return f"F falls by {fall:.3g} per unit"


def check_error(problem, proof, claim):
    """||u - u*|| <= bound for smooth F under equations, by u* nearly, or exactly."""
    u = proof.vector(problem.columns, problem.size)
    y = proof.vector(problem.rows, len(problem.v))
    bound = claim["bound"]
    if claim["met"] and not bound <= claim["tol"] * max(1.0, norm(u)) * UP:
        raise Verdict("not confirmed", f"the bound {bound:.3g} is larger than was asked for")
    limited = problem.sense.any() or np.isfinite([*problem.lower, *problem.upper]).any()
    if limited or problem.second or any(term.kinked for term in problem.terms):
        raise Verdict("not checked", "an error bound with inequalities or kinks")
    K, keep = kept(problem, proof.dropped)
    shown = refined(problem, u, K, problem.v[keep], y[keep], bound)
    if not shown <= bound * UP:
        raise Verdict("not confirmed", f"the error is at most {shown:.3g}, {bound:.3g} claimed")
    return f"error at most {shown:.3g} ({bound:.3g} claimed)"


def kept(problem, dropped):
    """(the rows that count, a mask): not those listed, which must lie in the others' span."""
    keep = np.ones(len(problem.v), dtype=bool)
    keep[problem.rows["coupled"][dropped.get("coupled", [])]] = False
    for kind in ("local", "shared"):
        if isinstance(dropped.get(kind), int):
            raise Verdict("not checked", "rows were left out of which only the number is known")
        for i, rows in dropped.get(kind, {}).items():
            keep[problem.rows[f"{kind}{i}"][rows]] = False
    K = problem.K
    if not keep.all():
        unit = K.toarray() / lengths(K)[:, None]
        inside = np.linalg.lstsq(unit[keep].T, unit[~keep].T, rcond=None)[0]
        apart = np.linalg.norm(unit[~keep].T - unit[keep].T @ inside, axis=0).max()
        if not apart <= (MASKED if dropped.get("summed") else RANK) * math.sqrt(len(keep)):
            raise Verdict("not confirmed", f"a row was dropped {apart:.3g} from the others' span")
    use = keep[K.row]
    places = ((np.cumsum(keep) - 1)[K.row[use]], K.col[use])
    return sp.coo_array((K.data[use], places), (int(keep.sum()), K.shape[1])), keep


# -- error bounds ----------------------------------------------------------------------------------
def refined(problem, u, K, v, y, bound):
    """||u - u*|| <= ||u - w|| + ||w - u*||, w by Newton's method from u.

    Let r = grad F(w) + K'y and e = K w - v. Within c = ||e|| / sigma of w lies a point that meets
    the rows, where the slope is within L c of r. F bends by mu along the rows, thus

        ||w - u*|| <= c + (||r|| + L c) / mu.

    Residuals are exact, so that a few steps make this as small as one likes: rough constants do.
    """
    sigma, mu = constants(problem, K)
    solve, L, reach = newton(problem, K, u)
    w = u
    shown = math.inf
    for _ in range(STEPS):
        r, _, off = support(problem, w, K, y)
        e = product(K, w) - v
        c = norm(e) / sigma
        rest = (c + (norm(r) + off + L * c) / mu) * UP
        if norm(w - u) + c <= reach:
            shown = min(shown, (norm(w - u) + rest) * UP)
        step = solve(above(r), above(e))
        if rest <= 1e-3 * bound or not np.isfinite(step).all():
            break
        w = w - exact(step[: len(w)])
        y = y - exact(step[len(w) :])
    if shown > bound and rest > 1e-3 * bound:
        raise Verdict("not checked", f"no more is shown than an error of at most {shown:.3g}")
    return shown


def newton(problem, K, u):
    """(steps for residuals of slopes and rows; L, and how far from u it holds).

    Intercepts are unknowns as well. Where phi'' is not at most 1 (tweedie), |phi'''| <= phi''.
    """
    t = problem.image(u)
    M = problem.M.tocsr()
    bends = np.zeros(len(t))
    most = np.zeros(len(t))
    reach = math.inf
    fitted = [k for k, term in enumerate(problem.terms) if term.intercept]
    ones = np.zeros((len(t), len(fitted)))
    for k, term in enumerate(problem.terms):
        rows = term.rows
        bends[rows] = term.bends(t[rows] + term.fitted(t[rows])[0])
        most[rows] = np.maximum(term.w, 3 * bends[rows])
        ones[np.ix_(rows, np.equal(fitted, k))] = 1.0
        if term.phi == "tweedie":
            reach = min(reach, 1 / size(M[rows]))
    D = sp.diags_array(bends)
    B = sp.csr_array(M.T @ (D @ ones))
    system = [[problem.hessian(bends), B, K.T], [B.T, ones.T @ (D @ ones), None], [K, None, None]]
    S = sp.block_array(system, format="csc")
    order = np.argsort(np.diff(S.indptr), kind="stable")  # what stands in few rows goes first
    try:
        factor = splu(S[order][:, order].tocsc(), permc_spec="NATURAL")
    except RuntimeError as error:
        raise Verdict("not checked", f"a system cannot be solved: {error}") from None
    n = len(u)

    def solve(r, e):
        step = np.concatenate([r, np.zeros(len(fitted)), e])
        step[order] = factor.solve(step[order])
        return np.concatenate([step[:n], step[n + len(fitted) :]])

    return solve, (float(most @ (M**2).sum(axis=1)) + size(problem.H)) * UP, reach


def tallest(A):
    """The largest entry of each row; 0 where there is none."""
    return A.max(axis=1).toarray().ravel() if 0 not in A.shape else np.zeros(A.shape[0])


def constants(problem, K):
    """Lower bounds (sigma, mu): the least singular value of K, how F bends along K u = 0.

    By structure: unknowns that stand in one row give a diagonal block of K. Such an unknown, where
    F is flat in it, is at most kappa times as long as the others in its row. Else by Cholesky
    factors of K K' and H + K'K.
    """
    most = sp.csc_array(abs(K))
    low = abs(sp.csc_array(K)) - RANK * most  # at least, as entries are added up
    alone = (np.diff(most.indptr) == 1).astype(float)
    long = lengths(K)
    unit = sp.diags_array(1 / long) @ K.tocsr()
    sigma = float(tallest(low @ sp.diags_array(alone)).min(initial=math.inf))
    if not sigma > 0:
        if len(long) > LARGEST:
            raise Verdict("not checked", f"too large: {len(long)} rows")
        Y = np.linalg.pinv(unit.toarray())
        left = size(unit @ Y - np.eye(len(Y.T))) + EPS * sum(Y.shape) * size(abs(unit) @ abs(Y))
        if left > 0.5:
            raise Verdict("not checked", "rows are too close to dependent")
        sigma = (1 - left) / size(Y) * float(long.min()) / UP
    weights = problem.squares()
    M = problem.M.tocsr()
    bends = (M**2).T @ ((np.diff(M.indptr) == 1) * weights) / UP
    if (problem.H.row == problem.H.col).all():
        bends += problem.H.tocsr().diagonal() / UP
    flat = (bends == 0).astype(float)
    beta = tallest(low @ sp.diags_array(flat * alone))
    if (beta > 0).sum() == flat.sum():
        others = ((most @ sp.diags_array(1 - flat)) ** 2).sum(axis=1)[beta > 0]
        kappa = math.sqrt(float((others / beta[beta > 0] ** 2).sum()))
        return sigma, float(bends[flat == 0].min(initial=math.inf)) / (1 + kappa**2) / UP
    H = problem.hessian(weights)
    S = H + H.trace() / max(1, K.shape[0]) * (unit.T @ unit)
    return sigma, least_eigenvalue(S, len(K.data) + len(weights)) / UP


def least_eigenvalue(M, count, shares=(1e-4, 1e-7, 1e-10)):
    """A rough lower bound above zero, of a matrix whose entries are sums of ``count`` products.

    A matrix that is less by some share of the trace, and by rounding, has a Cholesky factor, whose
    backward error is at most (n + 2) eps / (1 - (n + 2) eps) times the trace (Rump 2006).
    """
    if M.shape[0] > LARGEST:
        raise Verdict("not checked", f"too large: {M.shape[0]} rows or unknowns")
    trace = float(M.trace())
    for share in shares:
        less = (share + EPS * (count + 2 * M.shape[0] + 10)) * trace
        try:
            np.linalg.cholesky(M.toarray() - less * np.eye(M.shape[0]))
            return share * trace
        except np.linalg.LinAlgError:
            continue
    raise Verdict("not checked", "a system is too close to singular")


def convex(H):
    """Refuse a matrix with eigenvalues below zero, but for 1e-9 of max(1, its size)."""
    if (H.row == H.col).all() and (H.data >= 0).all():
        return
    more = 1e-9 * max(1.0, float(abs(H).sum(axis=1).max(initial=0.0)))
    try:
        least_eigenvalue(H.tocsr() + more * sp.eye_array(H.shape[0]), 1, (0.0,))
    except Verdict as verdict:
        raise Verdict(
            "not confirmed", f"an objective is not shown to be convex: {verdict.args[1]}"
        ) from None


# -- the command -----------------------------------------------------------------------------------
CHECKS = {
    "error": check_error,
    "gap": check_gap,
    "infeasible": check_infeasible,
    "unbounded": check_unbounded,
}


def confirmed(problem_folder, result_folder):
    """What is confirmed, in words; else a Verdict."""
    head = json.loads((result_folder / "proof.json").read_text(encoding="utf-8"))
    if head["format"] != "ccmac-proof" or head["version"] != 1:
        raise Verdict("bad input", "proof.json is no proof of version 1")
    claims = [claim for claim in head["claims"] if claim["kind"] != "reference"]
    if not claims:
        raise Verdict("not checked", f"a result that is {head['status']} here claims nothing")
    problem = Problem(problem_folder)
    if head["problem"] != problem.digest:
        raise Verdict("not confirmed", "the proof is about another problem")
    proof = Blocks(result_folder, head["files"].items())
    proof.dropped = head["dropped"]
    words = []
    for claim in claims:
        try:
            words.append(CHECKS[claim["kind"]](problem, proof, claim))
        except Verdict as verdict:
            if not words or verdict.args[0] != "not checked":  # the first is the status's
                raise
            words.append(f"{claim['kind']} not checked: {verdict.args[1]}")
    return "; ".join(words)


def check(problem_folder, result_folder):
    """(confirmed, not confirmed, not checked or bad input; what or why)."""
    try:
        return "confirmed", confirmed(Path(problem_folder), Path(result_folder))
    except Verdict as verdict:
        return verdict.args
    except Exception as error:  # whatever damaged files lead to
        return "bad input", f"{type(error).__name__}: {error}"


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="ccmac-check", description=__doc__.split("\n\n")[0])
    parser.add_argument("problem", help="a folder that Problem.save wrote")
    parser.add_argument("result", help="a folder that Result.save or ccmac solve --out wrote")
    options = parser.parse_args(arguments)
    word, why = check(options.problem, options.result)
    print(f"{word}: {why}")
    return CODES[word]


if __name__ == "__main__":
    sys.exit(main())
