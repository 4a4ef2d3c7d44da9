"""Random problems of the regimes without strong convexity, and their solutions by Clarabel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

import ccmac
from ccmac.objectives import L1, Box, Hinge, LeastSquares, Logistic, Separable, Sum

Array = NDArray[np.float64]
Term = Callable[[Any, Any], Any]


class Case:
    """A problem, its network, and the same written for CVXPY."""

    def __init__(
        self, objectives: list[Any], terms: list[Term], d: int, q: int, seed: int, groups: int = 0
    ) -> None:
        """``groups`` of an agent's x have fixed sums, and then every agent ties z too."""
        rng = np.random.default_rng([seed, 77])
        n = len(objectives)
        m = 3
        x = [rng.standard_normal(d) for _ in range(n)]
        z = rng.standard_normal(q)
        agents = []
        constraints = []
        X = [cvxpy.Variable(d) for _ in range(n)]
        Z = cvxpy.Variable(q)
        coupled: Any = 0
        for i, objective in enumerate(objectives):
            A, B, C = (rng.standard_normal(shape) for shape in ((m, d), (m, q), (1, d)))
            D = None
            if groups:
                C = np.repeat(np.eye(groups), d // groups, axis=1)
                D = rng.standard_normal((1, q)) if i < q - 1 else None
            b = A @ x[i] + B @ z
            c = C @ x[i]
            e = None if D is None else D @ z
            agents.append(ccmac.Agent(objective, A=A, B=B, b=b, C=C, c=c, D=D, e=e))
            coupled = coupled + A @ X[i] + B @ Z - b
            constraints.append(C @ X[i] == c)
            if D is not None:
                constraints.append(e == D @ Z)
        total = sum(term(X[i], Z) for i, term in enumerate(terms))
        reference = cvxpy.Problem(cvxpy.Minimize(total), [coupled == 0, *constraints])
        reference.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        self.problem = ccmac.Problem(agents)
        self.network = ccmac.Network.ring(n) if n > 2 else ccmac.Network.path(n)
        self.value = float(reference.value)
        self.solution = np.concatenate([v.value for v in [*X, Z]])
        self.radius = float(np.linalg.norm(self.solution))


def case(kind: str, seed: int) -> Case:
    """One random problem; ``kind`` names the loss."""
    rng = np.random.default_rng(seed)
    grouped = kind == "groups"
    n = int(rng.integers(2, 5))
    d = 6 if grouped else 5
    q = 3
    objectives: list[Any] = []
    terms: list[Term] = []
    for _ in range(n):
        objective, term = KINDS[kind](rng, d, q)
        objectives.append(objective)
        terms.append(term)
    return Case(objectives, terms, d, q, seed, groups=3 if grouped else 0)


def least_squares(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """Rank deficient: fewer rows than unknowns."""
    M = rng.standard_normal((4, d + q))
    y = rng.standard_normal(4)
    return LeastSquares(M, y), lambda x, z: 0.5 * cvxpy.sum_squares(M[:, :d] @ x + M[:, d:] @ z - y)


def contradicting(rng: np.random.Generator, columns: int) -> tuple[Array, Array]:
    """Rows and labels where every row contradicts another: a minimum exists without a ridge."""
    rows = rng.standard_normal((5, columns))
    labels = np.sign(rng.standard_normal(5))
    return np.vstack([rows, 0.6 * rows]), np.concatenate([labels, -labels])


def logistic(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """No ridge, fewer rows than unknowns."""
    M, y = contradicting(rng, d + q)
    return Logistic(
        M, y, weight=0.5
    ), lambda x, z: 0.5 * cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, M[:, :d] @ x + M[:, d:] @ z)))


def absolute(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """L1 regression with targets on x and z."""
    a = rng.standard_normal(d)
    b = rng.standard_normal(q)
    return Separable(
        x=L1(1.0, a), z=L1(0.5, b)
    ), lambda x, z: cvxpy.norm1(x - a) + 0.5 * cvxpy.norm1(z - b)


def hinge(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """An SVM's loss on z, a ridge on x."""
    y = np.sign(rng.standard_normal(q))
    return Separable(
        x=ccmac.objectives.SquaredDistance(0.5), z=Hinge(y=y)
    ), lambda x, z: 0.25 * cvxpy.sum_squares(x) + cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y, z)))


def lasso(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """A lasso penalty on x, a squared loss on z."""
    y = rng.standard_normal(q)
    return Separable(
        x=L1(0.3), z=ccmac.objectives.SquaredDistance(1.0, y)
    ), lambda x, z: 0.3 * cvxpy.norm1(x) + 0.5 * cvxpy.sum_squares(z - y)


def composite(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """A logistic loss of Mx with an L1 penalty (no prox of the sum), absolute deviations of z."""
    M, y = contradicting(rng, d)
    b = rng.standard_normal(q)
    return (
        Separable(x=Logistic(M, y) + L1(0.2), z=L1(0.5, b)),
        lambda x, z: (
            cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, M @ x)))
            + 0.2 * cvxpy.norm1(x)
            + 0.5 * cvxpy.norm1(z - b)
        ),
    )


def ridged(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """Kinks and strong convexity: least squares of Mx, L1 penalties, ridges on x and z."""
    M = rng.standard_normal((3, d))
    y = rng.standard_normal(3)
    objective = Separable(
        x=LeastSquares(M, y) + ccmac.objectives.ElasticNet(0.5, 1.0),
        z=ccmac.objectives.ElasticNet(0.5, 0.5),
    )
    return (
        objective,
        lambda x, z: (
            0.5 * cvxpy.sum_squares(M @ x - y)
            + 0.5 * (cvxpy.norm1(x) + cvxpy.sum_squares(x) + cvxpy.norm1(z))
            + 0.25 * cvxpy.sum_squares(z)
        ),
    )


def groups(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """Absolute deviations of x, whose groups have fixed sums; a Huber loss on z, which is tied."""
    a = rng.standard_normal(d)
    y = rng.standard_normal(q)
    return Separable(
        x=L1(1.0, a), z=ccmac.objectives.Huber(y=y, delta=0.5)
    ), lambda x, z: cvxpy.norm1(x - a) + 0.5 * cvxpy.sum(cvxpy.huber(z - y, 0.5))


def box(rng: np.random.Generator, d: int, q: int) -> tuple[Any, Term]:
    """Simple sets on x and a linear-quadratic cost; the feasible point lies inside."""
    y = rng.standard_normal(d)
    objective = Separable(
        x=Sum(ccmac.objectives.SquaredDistance(1.0, y), Box(-4.0, 4.0)),
        z=ccmac.objectives.SquaredDistance(0.1),
    )
    slack = cvxpy.transforms.indicator

    def term(x: Any, z: Any) -> Any:
        inside = slack([x <= 4.0, x >= -4.0])
        return 0.5 * cvxpy.sum_squares(x - y) + 0.05 * cvxpy.sum_squares(z) + inside

    return objective, term


KINDS = {
    "least-squares": least_squares,
    "logistic": logistic,
    "absolute": absolute,
    "hinge": hinge,
    "lasso": lasso,
    "groups": groups,
    "composite": composite,
    "ridged": ridged,
    "box": box,
}
