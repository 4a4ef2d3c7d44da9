"""ccmac-check PROBLEM_DIR RESULT_DIR: is what a result claims true?

A checker that shares no code with ccmac. It reads a stored problem and a stored result with its
proof (docs/proof-format.md), evaluates them in fractions (a double is one), and says confirmed
(exit code 0), not confirmed (1), bad input (2) or not checked (4). It believes no number of the
proof: multipliers that are worse make what it shows weaker, never false.

With u = (x_1, ..., x_n, z), rows K u = v (or <=, >=, or v - K u in a cone), bounds, and F the sum
of the objectives, u* any solution:

    claim       what is shown                                               by
    error       ||u - u*|| <= bound (smooth F, equations)                   ``check_error``
    gap         F(u) - F(u*) <= gap if u* is within ``radius`` of the       ``check_gap``
                start; rows of length one and bounds violated by at most
                ``tol`` max(1, right-hand side)
    infeasible  no solution is shorter than ``radius``: a Farkas            ``check_infeasible``
                certificate
    unbounded   F falls without bound along a direction, up to what         ``check_unbounded``
                counts as level (docs/trust.md)

Not checked, and said so: objectives of other kinds than ``KINDS`` and problems that are code; error
bounds with inequalities or kinks, or that need dense matrices of more than 4,000 rows. Nor is it
asked whether the problem is the one that was meant, what the multipliers of an error bound are
worth, and what else a result says: estimates, residuals, what a run cost.
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
SMALL = 1e-8  # a fall, relative to all slopes, or a contradiction that counts
NEAR = 1e-4  # a kink nearer than this may have any slope
LARGEST = 4000  # rows or unknowns of dense matrices
STEPS = 12  # of Newton's method
CODES = {"confirmed": 0, "not confirmed": 1, "bad input": 2, "not checked": 4}
SENSES = {"<=": 1, "==": 0, ">=": -1, "nonnegative": 1, "zero": 0, "second-order": 0}
AGENT = r"^- file: (\w[\w.-]*)\n  sha256: (\w+)\n  d: (\d+)\n  p: (\d+)\n  r: (\d+)$"
KINDS = {  # of objectives: (phi of ``Term``, names of shift, weight and ridge)
    "SquaredDistance": ("square", "centre", "weight", None),
    "LeastSquares": ("square", "y", "weight", None),
    "Ridge": ("square", "y", "weight", "regularization"),
    "Huber": ("huber", "y", "weight", "ridge"),
    "Logistic": ("logistic", None, "weight", "ridge"),
    "Tweedie": ("tweedie", "offset", "weight", "ridge"),
    "Hinge": ("hinge", "y", "weight", "ridge"),
    "Pinball": ("pinball", "y", "weight", "ridge"),
    "L1": ("abs", "centre", "weight", None),
    "ElasticNet": ("abs", None, "l1", "l2"),
    "MaxAffine": ("max", "c", None, None),
}  # and Quadratic, Box, Separable, Sum, Intercept (of one of these)


class Verdict(Exception):
    """(a word of ``CODES``, why)."""


# -- the command -----------------------------------------------------------------------------------
def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="ccmac-check", description=__doc__.split("\n\n")[0])
    parser.add_argument("problem", help="a folder that Problem.save wrote")
    parser.add_argument("result", help="a folder that Result.save or ccmac solve --out wrote")
    options = parser.parse_args(arguments)
    word, why = check(options.problem, options.result)
    print(f"{word}: {why}")
    return CODES[word]


def check(problem_folder, result_folder):
    """(confirmed, not confirmed, not checked or bad input; what or why)."""
    try:
        return "confirmed", confirmed(Path(problem_folder), Path(result_folder))
    except Verdict as verdict:
        return verdict.args
    except Exception as error:  # whatever damaged files lead to
        return "bad input", f"{type(error).__name__}: {error}"


def confirmed(problem_folder, result_folder):
    """What is confirmed, in words; else a Verdict."""
    head = json.loads((result_folder / "proof.json").read_text(encoding="utf-8"))
    if head["format"] != "ccmac-proof" or head["version"] != 1:
        raise Verdict("bad input", "proof.json is no proof of version 1")
    claims = [claim for claim in head["claims"] if claim["kind"] != "reference"]
    if not claims:
        raise Verdict("not checked", f"a result that is {head['status']} here claims nothing")
    shown = "optimal" if claims[0]["kind"] == "gap" or claims[0].get("met") else claims[0]["kind"]
    if head["status"] in ("optimal", "infeasible", "unbounded") and head["status"] != shown:
        raise Verdict("not confirmed", f"no claim says that it is {head['status']}")
    problem = Problem(problem_folder)
    if head["problem"] != problem.digest:
        raise Verdict("not confirmed", "the proof is about another problem")
    proof = Blocks(result_folder, head["files"].items())
    proof.dropped = head["dropped"]
    checks = {"error": check_error, "gap": check_gap}
    checks |= {"infeasible": check_infeasible, "unbounded": check_unbounded}
    words = []
    for claim in claims:
        try:
            words.append(checks[claim["kind"]](problem, proof, claim))
        except Verdict as verdict:
            if not words or verdict.args[0] != "not checked":  # the first is the status's
                raise
            words.append(f"{claim['kind']} not checked: {verdict.args[1]}")
    return "; ".join(words)


# -- claims ----------------------------------------------------------------------------------------
def check_gap(problem, proof, claim):
    """F(u) - F(u*) <= gap, for solutions u* within R of the start u0, as u is.

    F(u*) >= F(u) - cost + <r - K'y, u* - u> (``support``), and y'(K u* - v) <= 0 by the signs of y:

        F(u) - F(u*) <= cost - y'(K u - v) + sum_held r_j (u_j - end_j) + <r_f, u - u0> + R ||r_f||,

    end_j the bound that r_j pushes to, r_f the entries of r that push where there is none.
    """
    u = proof.vector(problem.columns, problem.size)
    start = proof.vector(problem.columns, problem.size, "start.")
    y = problem.dual(proof.vector(problem.rows, len(problem.v)))
    e = product(problem.K, u) - problem.v
    r, cost, off = support(problem, u, product(problem.K.T, y))
    ends, there = held(r, problem)
    base = cost - (y * e).sum() + (r * (u - np.where(there, ends, start))).sum()
    radius = claim["radius"]
    if not radius * UP >= norm(u - start):
        raise Verdict("not confirmed", f"the point itself is not within {radius:.3g} of the start")
    lost = (norm(r[~there]) + 2 * off * UP) * radius
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
    return f"F - F* <= {gap:.3g} within {radius:.3g}, violation {violation:.3g}"


def held(r, problem):
    """(the bound that each entry of r pushes down to, 0 where there is none; whether there is)."""
    end = np.where(r > 0, problem.lower, problem.upper)
    there = np.isfinite(end) | (r == 0)
    return exact(np.where(np.isfinite(end) & (r != 0), end, 0.0)), there


def check_infeasible(problem, proof, claim):
    """No solution is shorter than R.

    With y = -multipliers and r = K'y, every solution has held - ||r_f|| ||u|| <= r'u <= y'v.
    """
    y = problem.dual(-proof.vector(problem.rows, len(problem.v), "farkas."))
    r = product(problem.K.T, y)
    ends, there = held(r, problem)
    value = float((r * np.where(there, ends, 0)).sum() - (y * problem.v).sum()) / UP
    if not value > 0:
        raise Verdict("not confirmed", f"the multipliers leave {value:.3g}, which is not positive")
    defect = norm(r[~there])
    if not defect:
        return "no solution"
    bounds = np.abs([*problem.lower, *problem.upper])
    reach = FAR * max(problem.right(), float(bounds[np.isfinite(bounds)].max(initial=0.0)))
    radius = value / defect / UP
    if not radius >= max(reach, claim["radius"] or math.inf) * (1 - 1e-6):
        raise Verdict("not confirmed", f"solutions longer than {radius:.3g} are not excluded")
    return f"no solution shorter than {radius:.3g}"


def check_unbounded(problem, proof, _):
    """Along d bounds hold and F falls, more than minimisers and multipliers of 1e6 data allow.

    A minimiser w with multipliers y has fall <= ||w|| ||H d|| + ||y|| ||K d||. Straight terms rise
    as their slopes far out say; squares with intercepts by no more than without.
    """
    d = proof.vector(problem.columns, problem.size, "direction.")
    bounded = np.isfinite(problem.lower) & (d < 0) | np.isfinite(problem.upper) & (d > 0)
    length = norm(d)
    if bounded.any() or not length:
        raise Verdict("not confirmed", "the direction leaves a bound, or is none")
    along = product(problem.M, d)
    weights = problem.squares()
    slope = -problem.g - product(problem.M.T, weights * problem.shift)
    rise = (slope * d).sum()
    steep = norm(slope)
    for term in problem.terms:
        if term.phi == "tweedie":
            raise Verdict("not checked", "how means fall far out is not checked")
        rise += term.far(along[term.rows])
        _, _, low, high = term.nearly
        steep += float(np.maximum(high, -low).max(initial=0)) * norm(along[term.rows]) / length
    fall = -float(above([rise])[0]) / length
    bend = norm(product(problem.H, d) + product(problem.M.T, weights * along)) / length
    rows = size(problem.violations(product(problem.K, d), 0.0)) / length
    if not fall > SMALL * steep or fall < FAR * (problem.right() * bend + steep * rows):
        why = f"the fall {fall:.3g} is too small: rows change by {rows:.3g}, slopes by {bend:.3g}"
        raise Verdict("not confirmed", why)
    return f"F falls by {fall:.3g} per unit"


def check_error(problem, proof, claim):
    """||u - u*|| <= bound, for smooth F under equations of independent rows.

    Newton's method leads from u to some w; there r = grad F + K'y and e = K w - v, in fractions.
    Let sigma be K's least singular value, and F bend by at most L, and by mu along K u = 0. Within
    c = ||e|| / sigma of w a point meets the rows, and r is at most ||r|| + L c there: thus

        ||u - u*|| <= ||u - w|| + c + (||r|| + L c) / mu.

    Steps make r and e as small as one likes, so that rough constants do.
    """
    u = proof.vector(problem.columns, problem.size)
    bound = claim["bound"]
    if claim["met"] and not bound <= claim["tol"] * max(1.0, norm(u)) * UP:
        raise Verdict("not confirmed", f"the bound {bound:.3g} is larger than was asked for")
    limited = problem.sense.any() or np.isfinite([*problem.lower, *problem.upper]).any()
    if limited or problem.second or any(term.kinked for term in problem.terms):
        raise Verdict("not checked", "an error bound with inequalities or kinks")
    K, keep = kept(problem, proof.dropped, u, bound)
    y = proof.vector(problem.rows, len(problem.v))[keep]
    sigma, mu = constants(problem, K)
    solve, L, reach = newton(problem, K, u)
    w = u
    shown = math.inf
    for _ in range(STEPS):
        r, _, off = support(problem, w, product(K.T, y))
        e = product(K, w) - problem.v[keep]
        c = norm(e) / sigma
        rest = (c + (norm(r) + off + L * c) / mu) * UP
        if norm(w - u) + c <= reach:
            shown = min(shown, (norm(w - u) + rest) * UP)
        if rest <= 1e-3 * bound:
            break
        step, turn = solve(above(r), above(e))
        w = w - exact(step)
        y = y - exact(turn)
    if shown > bound and rest > 1e-3 * bound:
        raise Verdict("not checked", f"no more is shown than an error of at most {shown:.3g}")
    if not shown <= bound * UP:
        raise Verdict("not confirmed", f"the error is at most {shown:.3g}, {bound:.3g} claimed")
    without = "" if keep.all() else f", without {(~keep).sum()} dependent rows"
    return f"error at most {shown:.3g} ({bound:.3g} claimed){without}"


def kept(problem, dropped, u, bound):
    """(the rows that count, a mask): not those listed, in the others' span and met as well."""
    keep = np.ones(len(problem.v), dtype=bool)
    keep[problem.rows["coupled"][dropped.get("coupled", [])]] = False
    for kind in ("local", "shared"):
        if isinstance(dropped.get(kind), int):
            raise Verdict("not checked", "rows were left out of which only the number is known")
        for i, rows in dropped.get(kind, {}).items():
            keep[problem.rows[f"{kind}{i}"][rows]] = False
    if not keep.all():
        summed = dropped.get("summed")
        unit = dense(problem.K) / lengths(problem.K)[:, None]
        inside = np.linalg.lstsq(unit[keep].T, unit[~keep].T, rcond=None)[0]
        apart = np.linalg.norm(unit[~keep].T - unit[keep].T @ inside, axis=0).max()
        if not apart <= (MASKED if summed else RANK) * math.sqrt(len(keep)):
            raise Verdict("not confirmed", f"a row was dropped {apart:.3g} from the others' span")
        left = problem.violations(product(problem.K, u) - problem.v, 0.0)[~keep].max()
        if not left <= bound + (MASKED if summed else SMALL) * (problem.right() + norm(u)):
            raise Verdict("not confirmed", f"a row that was dropped is violated by {left:.3g}")
    use = keep[problem.K.row]
    places = ((np.cumsum(keep) - 1)[problem.K.row[use]], problem.K.col[use])
    return sp.coo_array((problem.K.data[use], places), (int(keep.sum()), problem.size)), keep


# -- objectives ------------------------------------------------------------------------------------
def support(problem, u, pull):
    """(r, cost, off): F(u') >= F(u) - cost + <r - pull + e, u' - u> for all u', some ||e|| <= off.

    r = grad F + pull where F is smooth. A kinked term is phi(t) = sup s't: with any of these s,
    phi(t') >= phi(t) - cost + s'(t' - t), cost = phi(t) - s't. They are taken to make r small.
    """
    t = product(problem.M, u) - problem.shift
    s = zeros(len(t))
    off = 0.0
    for term in problem.terms:
        if not term.kinked:
            s[term.rows], more = term.gradient(t[term.rows])
            off += more * max(1.0, size(problem.M))
    r = product(problem.H, u) - problem.g + product(problem.M.T, s) + pull
    at = u.astype(float)
    inside = np.minimum(at - problem.lower, problem.upper - at) > 1e-6 * (1 + np.abs(at))
    near = NEAR * (1 + np.abs(problem.shift.astype(float)))
    M = problem.M.tocsr()
    cost = Fraction(0)
    kinked = [term for term in problem.terms if term.kinked]
    for term in sorted(kinked, key=lambda term: M[term.rows].nnz > len(term.rows)):  # entries first
        rows = term.rows
        left = np.where(inside | (M[rows].nnz == len(rows)), -r.astype(float), math.nan)
        best = t[rows] + term.best(t[rows])
        s = zeros(len(t))
        s[rows] = term.kinks(M[rows], best.astype(float), near[rows], left)
        cost += term.far(best) - (s * t).sum()  # with an intercept s adds up to zero
        r = r + product(problem.M.T, s)
    return r, cost, off


class Term:
    """sum_j w_j phi(t_j) over the ``rows`` of t = M u - shift; with ``intercept``: min_b at t + b.

    Smooth: square t^2/2; huber, the same up to |t| = delta, then straight; logistic
    log(1 + exp(-y t)); tweedie, half the deviance of exp(t) from y. Kinked, the sup of s't over
    low <= s <= high: abs |t|; hinge max(0, -y t); pinball; max, of s that add up to one.
    """

    def __init__(self, phi, rows, w, state, intercept):
        self.phi = phi
        self.rows = rows
        self.intercept = intercept
        self.kinked = phi in ("abs", "hinge", "pinball", "max")
        self.power = state.get("power", 1.0)
        y = zeros(len(rows)) if state.get("y") is None else exact(state["y"])
        one = Fraction(state.get("delta", state.get("quantile", 1)))
        ends = {"abs": (-1, 1), "max": (0, 1), "huber": (-one, one), "pinball": (-one, 1 - one)}
        ends |= dict.fromkeys(("hinge", "logistic"), (-np.maximum(y, 0), -np.minimum(y, 0)))
        low, high = (w * end for end in ends.get(phi, (0, 0)))  # slopes far out
        labels = phi not in ("hinge", "logistic") or (np.abs(y) == 1).all()
        deviance = phi != "tweedie" or (1 <= self.power <= 2 and (y >= 0).all() and y.any())
        if not (labels and deviance) or (w < 0).any() or (low > 0).any() or (high < 0).any():
            raise Verdict("not checked", "an objective that is not convex")
        self.exactly = (w, y, low, high)
        self.nearly = tuple(v.astype(float) for v in self.exactly)
        rounded = phi in ("logistic", "tweedie")
        self.off = rounded * 2.0**-130 * norm(w) * (1 + norm(y))  # bounds errors of slopes

    def slopes(self, t):
        """w phi'(t), beside a kink where there is one; in fractions or in doubles as t is."""
        w, y, low, high = self.exactly if t.dtype == object else self.nearly
        if self.phi == "square":
            return w * t
        if self.phi == "huber":
            return np.clip(w * t, low, high)
        if self.phi == "logistic":
            return -w * y * of_each(lambda v, exp: 1 / (1 + exp(v)), y * t)
        if self.phi != "tweedie":
            return np.where(t > 0, high, low)
        if t.dtype == object:  # beyond, ccmac goes on with a parabola
            with np.errstate(divide="ignore"):
                least = np.log(self.nearly[1])
            if ((t > least.max() + 4) | (t < np.maximum(least, -490) - 4)).any():
                raise Verdict("not checked", "means are far from what was observed")
        number = Fraction if t.dtype == object else float
        means = of_each(lambda v, exp: exp(v), number(2.0 - self.power) * t)
        return w * (means - y * of_each(lambda v, exp: exp(v), number(1.0 - self.power) * t))

    def bends(self, t):
        """w phi''(t) of a smooth term, nearly, in doubles."""
        return (self.slopes(t + 2.0**-16) - self.slopes(t - 2.0**-16)) * 2.0**15

    def best(self, t):
        """The best intercept, nearly, by bisection: slopes grow with it; 0 where there is none."""
        t = t.astype(float)
        low = high = 0.0
        if self.intercept:
            high = 1000.0 + float(np.abs(t).max())
            low = -high
        while low < (b := (low + high) / 2) < high:
            if self.slopes(t + b).sum() > 0:
                high = b
            else:
                low = b
        return Fraction(b)

    def gradient(self, t):
        """(w phi' of a smooth term, a bound on the norm of its error).

        Slopes grow with b, and the best b lies between two at which their sums differ in sign.
        """
        if not self.intercept:
            return self.slopes(t), self.off
        b = self.best(t)
        slack = Fraction(len(t) * self.off)
        for k in range(40):
            wide = Fraction(EPS) * (1 + abs(b)) * 4**k
            low = self.slopes(t + b - wide)
            high = self.slopes(t + b + wide)
            if low.sum() + slack <= 0 <= high.sum() - slack:
                return low, (norm(high - low) + 3 * self.off) * UP
        raise Verdict("not checked", "an intercept was not found")

    def far(self, t):
        """The value at t of the piecewise linear function that has the slopes far out."""
        _, _, low, high = self.exactly
        return max(t) if self.phi == "max" else (t * np.where(t > 0, high, low)).sum()

    def kinks(self, M, t, near, left):
        """Slopes s of a kinked term, any where t is ``near`` a kink: M's is to be ``left`` nearly.

        Entry by entry where rows of M have one, else by least squares; ``left`` may be unknown.
        """
        _, _, low, high = self.nearly
        one = float(self.phi == "max")  # what they add up to
        free = (np.abs(t - (t.max() if one else 0)) <= near) & (high > low)
        s = np.where(free | (one > 0), 0.0, self.slopes(t))
        if not one and (np.diff(M.indptr) == 1).all():
            s = np.where(free, left[M.indices] / M.data, s)
        elif free.any():
            inside = np.flatnonzero(np.isfinite(left))
            A = M[np.flatnonzero(free)][:, inside].toarray().T
            heavy = (one or self.intercept) * 1e3 * max(1.0, float(np.abs(A).max(initial=0.0)))
            wanted = np.append((left - M.T @ s)[inside], heavy * (one - s.sum()))
            A = np.vstack([A, np.full(A.shape[1], heavy)])
            how = "bvls" if free.sum() <= 500 else "trf"
            s[free] = lsq_linear(A, wanted, (low[free], high[free]), how, tol=1e-15).x
        _, _, low, high = self.exactly
        s = np.clip(exact(s), low, high)
        return made_to_sum(s, low, high, int(one)) if one or self.intercept else s


def made_to_sum(s, low, high, total):
    """The same numbers, moved within their ends where there is most room until they add up."""
    rest = total - s.sum()
    room = high - s if rest > 0 else low - s
    for j in np.argsort(-np.abs(room)):
        step = min(rest, room[j], key=abs)
        s[j] += step
        rest -= step
    if rest:
        raise Verdict("not confirmed", "no slopes add up as they should")
    return s


# -- constants of error bounds ---------------------------------------------------------------------
def newton(problem, K, u):
    """(steps for residuals of slopes and rows; L, and how far from u it holds).

    Intercepts are unknowns as well. Where phi'' is not at most w (tweedie), |phi'''| <= phi'', and
    scores with their intercepts move by at most one.
    """
    t = product(problem.M, u) - problem.shift
    M = problem.M.tocsr()
    terms = problem.terms
    at = [(t[term.rows] + term.best(t[term.rows])).astype(float) for term in terms]
    bends = np.concatenate([[], *(term.bends(t) for term, t in zip(terms, at, strict=True))])
    most = np.maximum(np.concatenate([[], *(term.nearly[0] for term in terms)]), 3 * bends)
    L = (float(most @ (M**2).sum(axis=1)) + size(problem.H)) * UP
    reach = [0.5 / size(M[term.rows]) for term in terms if term.phi == "tweedie"]
    ones = [np.isin(np.arange(len(t)), term.rows) for term in terms if term.intercept]
    A = sp.vstack([M.T, *(np.atleast_2d(one) for one in ones)]).T.tocsr()
    H = sp.block_diag([problem.H, sp.coo_array((len(ones), len(ones)))])
    rows = sp.hstack([K, sp.coo_array((K.shape[0], len(ones)))])
    S = sp.block_array([[H + A.T @ sp.diags_array(bends) @ A, rows.T], [rows, None]], format="csc")
    order = np.argsort(np.diff(S.indptr), kind="stable")  # what stands in few rows goes first
    try:
        factor = splu(S[order][:, order].tocsc(), permc_spec="NATURAL")
    except RuntimeError as error:
        raise Verdict("not checked", f"a system cannot be solved: {error}") from None

    def solve(r, e):
        step = np.concatenate([r, np.zeros(len(ones)), e])
        step[order] = factor.solve(step[order])
        return step[: len(r)], step[len(r) + len(ones) :]

    return solve, L, min(reach, default=math.inf)


def constants(problem, K):
    """Lower bounds (sigma, mu): the least singular value of K, how F bends along K u = 0.

    By structure: unknowns that stand in one row give a diagonal block of K. Such an unknown, where
    F is flat in it, is at most kappa times as long as the others in its row. Else by an approximate
    inverse Y of unit rows, sigma >= (1 - ||K Y - I||) / ||Y||, and by Cholesky's factor of H + K'K.
    """
    most = sp.csc_array(abs(K))
    low = abs(sp.csc_array(K)) - RANK * most  # at least, as entries are added up
    alone = (np.diff(most.indptr) == 1).astype(float)
    long = lengths(K)
    unit = sp.diags_array(1 / long) @ K.tocsr()
    sigma = float(tallest(low @ sp.diags_array(alone)).min(initial=math.inf))
    if not sigma > 0:
        Y = np.linalg.pinv(dense(unit))
        left = size(unit @ Y - np.eye(len(Y.T))) + EPS * sum(Y.shape) * size(abs(unit) @ abs(Y))
        if left > 0.5:
            raise Verdict("not checked", "rows are too close to dependent")
        sigma = (1 - left) / size(Y) * float(long.min()) / UP
    weights = problem.squares(intercepts=False).astype(float)
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
    H = problem.H.tocsr() + M.T @ sp.diags_array(weights) @ M
    S = H + H.trace() / max(1, K.shape[0]) * (unit.T @ unit)
    return sigma, least_eigenvalue(S, len(K.data) + len(weights)) / UP


def tallest(A):
    """The largest entry of each row; 0 where there is none."""
    return A.max(axis=1).toarray().ravel() if 0 not in A.shape else np.zeros(A.shape[0])


def least_eigenvalue(M, count, shares=(1e-4, 1e-7, 1e-10)):
    """A rough lower bound above zero, of a matrix whose entries are sums of ``count`` products.

    A matrix that is less by some share of the trace, and by rounding, has a Cholesky factor, whose
    backward error is at most (n + 2) eps / (1 - (n + 2) eps) times the trace (Rump 2006).
    """
    M = dense(M)
    trace = float(M.trace())
    for share in shares:
        less = (share + EPS * (count + 2 * M.shape[0] + 10)) * trace
        try:
            np.linalg.cholesky(M - less * np.eye(M.shape[0]))
            return share * trace
        except np.linalg.LinAlgError:
            continue
    raise Verdict("not checked", "a system is too close to singular")


def dense(M):
    """All entries, if they are not too many."""
    if M.shape[0] > LARGEST:
        raise Verdict("not checked", f"too large: {M.shape[0]} rows or unknowns")
    return M.toarray()


def convex(H):
    """Refuse a matrix with eigenvalues below zero, but for 1e-9 of max(1, its size)."""
    if (H.row == H.col).all() and (H.data >= 0).all():
        return
    H = H.tocsr()
    more = 1e-9 * max(1.0, float(abs(H).sum(axis=1).max(initial=0.0)))
    try:
        least_eigenvalue(H + more * sp.eye_array(H.shape[0]), 1, (0.0,))
    except Verdict as verdict:
        why = f"an objective is not shown to be convex: {verdict.args[1]}"
        raise Verdict("not checked" if "large" in why else "not confirmed", why) from None
    if (H != H.T).nnz:
        raise Verdict("bad input", "a matrix that is not symmetric")


# -- reading ---------------------------------------------------------------------------------------
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
        z = np.arange(starts[-1], self.size)
        low = listed("z_lower", "-inf").astype(float)
        self.bound(z, low, listed("z_upper", "inf").astype(float))
        self.columns = {"z": z}  # places in u, by names
        self.rows = {}  # places in K u, by names
        self.second = []  # those of second-order cones
        self.sense = np.zeros(0)
        self.drafts = {}  # of terms
        self.shift = zeros(0)
        self.g = zeros(self.size)
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
        self.v = sum((stored.vector(at, count) for stored, at in sides), zeros(count))
        self.K = self.matrix("K", len(self.v))
        self.H = self.matrix("H", self.size)
        self.M = self.matrix("M", len(self.shift))
        self.terms = [Term(*draft) for draft in self.drafts.values()]
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
        elif kind == "Intercept" and state["loss"]["kind"] in KINDS:
            self.add(state["loss"], at, d, intercept=True)
        elif kind in KINDS:
            phi, *names = KINDS[kind]
            shift, weight, ridge = (state.get(name) for name in names)
            if intercept and (ridge or phi in ("abs", "max")):
                raise Verdict("bad input", f"an intercept of {kind}")
            if kind != "Ridge" or shift is not None:
                self.term(state.get("M"), shift, at, phi, weight, state, intercept)
            if ridge:
                self.term(None, None, at, "square", ridge, {})
        else:
            raise Verdict("not checked", f"objectives of kind {kind} are not checked")

    def term(self, M, shift, at, phi, weight, state, intercept=False):
        """One more term of t = M u - shift (of tweedie and max: + shift), or more of its weight."""
        block = sp.eye_array(len(at)) if M is None else M
        rows = np.arange(block.shape[0]) + len(self.shift)
        w = exact(np.broadcast_to(1.0 if phi == "max" else weight, len(rows)))
        known = (at, shift, *(state.get(name) for name in ("y", "delta", "quantile", "power")))
        key = (phi, intercept, *(np.asarray(part, dtype=float).tobytes() for part in known))
        if M is None and key in self.drafts:  # agents may share a loss
            self.drafts[key][2] += w
            return
        self.drafts[key if M is None else len(self.drafts)] = [phi, rows, w, state, intercept]
        start = zeros(len(rows)) if shift is None else exact(np.broadcast_to(shift, len(rows)))
        self.put("M", block, rows, at)
        self.shift = np.append(self.shift, -start if phi in ("tweedie", "max") else start)

    def dual(self, y):
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

    def right(self):
        """The size of the right-hand sides of unit rows, at least 1."""
        return max(1.0, size(above(self.v) / self.unit))

    def squares(self, intercepts=True):
        """The weights of rows of M that are squared, 0 of others."""
        counts = [k.phi == "square" and (intercepts or not k.intercept) for k in self.terms]
        parts = [k.exactly[0] * count for k, count in zip(self.terms, counts, strict=True)]
        return np.concatenate([zeros(0), *parts])


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
        found = zeros(count)
        for name, at in places.items():
            part = self.arrays.get(prefix + name, np.zeros(0))
            if part.size:
                found[at] += exact(part.reshape(at.shape))
        return found


# -- fractions -------------------------------------------------------------------------------------
def exact(values):
    """A vector of doubles as fractions."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise Verdict("bad input", "data that are no finite numbers")
    return np.array([Fraction(v) if v else 0 for v in values.tolist()], dtype=object)


def zeros(count):
    """So many, exactly."""
    return np.zeros(count, dtype=object)


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


def lengths(M):
    """Of the rows, nearly; 1 for rows of zeros."""
    found = np.sqrt(np.asarray((M.tocsr() ** 2).sum(axis=1)).ravel())
    return np.where(found > 0, found, 1.0)


def product(M, x):
    """M x for a matrix in coordinates: in integers, as denominators are powers of two."""
    fraction, e = np.frexp(M.data)
    least = int(e.min(initial=0))
    entries = np.ldexp(fraction, 53).astype(np.int64).astype(object) << (e - least).astype(object)
    whole, below = integers(x)
    found = zeros(M.shape[0])
    np.add.at(found, M.row, entries * whole[M.col])  # entries at one place add up
    return found * (Fraction(2) ** (least - 53) / below)


def of_each(f, t):
    """f(v, exp) of every entry: of fractions, with an error below 2^-140 (1 + |f|).

    The exponentials of ``decimal`` are correctly rounded; 60 digits are asked for.
    """
    if t.dtype != object:
        with np.errstate(over="ignore"):
            return f(np.clip(t, -600, 600), np.exp)
    with localcontext(prec=60):
        cut = (max(-5000, min(5000, v)) for v in t)
        found = [round(f(Decimal(v.numerator) / v.denominator, Decimal.exp) * 2**160) for v in cut]
    return np.array(found, dtype=object) * Fraction(1, 2**160)


if __name__ == "__main__":
    sys.exit(main())
