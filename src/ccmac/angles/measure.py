"""``ccmac.geometry``: Friedrichs angle, cross factor, ranks, who causes the overlap.

``dense``    singular value decompositions of row bases: everything, to rounding
``sparse``   Lanczos on the projectors onto the row spaces, for what is too large for them
"""

from __future__ import annotations

from typing import Any

from ccmac.angles import dense, large
from ccmac.angles.report import Geometry
from ccmac.errors import InputError
from ccmac.inputs import nonnegative, of_kind, whole
from ccmac.limits import Reduction
from ccmac.network import Network, as_network
from ccmac.problem import Problem
from ccmac.runtime import InProcess
from ccmac.stack import Stack
from ccmac.texts import shown
from ccmac.workspace.scales import refuse_extreme

METHODS = ("dense", "sparse")


def geometry(
    problem: Problem | Stack,
    *,
    network: Network | str | Any | None = None,
    tolerance: float | None = None,
    dense_limit: int = 1000,
    method: str | None = None,
) -> Geometry:
    """How the channels of ``problem`` overlap; no communication, all agents in one process.

    Principal angles below ``tolerance`` count as exact common directions and are removed. The
    default is 1e-10, or 100 eps times the condition of the equilibrated rows where that is more,
    and 1e-7 where the method is ``sparse``. ``dense_limit`` is the largest size of a dense
    decomposition; ``method`` forces ``dense`` or ``sparse``. A network only adds kappa_W: the
    angles do not depend on it (Proposition prop:lift-invariance). Without B the cross
    factor is one (Corollary cor:old-orthogonal). Inequalities count as equations with a slack,
    which is how they are solved; bounds and conic rows do not count.

    Parameters
    ----------
    problem : Problem or Stack
        Whose channels are compared; all agents must be here.
    network : Network, str, graph or matrix, optional
        Adds kappa_W to the report.
    tolerance : float, optional
        Angles below this many radians count as common directions.
    dense_limit : int
        The largest size of a dense decomposition.
    method : {"dense", "sparse"}, optional
        Forces one way of computing.

    Returns
    -------
    Geometry
        Angle, cross factor, ranks, each agent's part; printed, a report.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> round(ccmac.geometry(problem).cross_factor, 6)
    1.0
    """
    if method is not None and not (isinstance(method, str) and method in METHODS):
        raise InputError(
            f"geometry: method {shown(method)} is unknown; take {' or '.join(METHODS)}"
        )
    of_kind("geometry, problem", problem, (Problem, Stack), "a ccmac.Problem or Stack")
    if tolerance is not None:
        nonnegative("geometry, tolerance", tolerance)
    dense_limit = whole("geometry: dense_limit", dense_limit)
    try:
        if isinstance(problem, Stack):
            return _of_stack(problem, tolerance, dense_limit, method)
        return _of_problem(problem, network, tolerance, dense_limit, method)
    except (ArithmeticError, ValueError) as error:
        refuse_extreme(problem, error)
        raise


def _of_stack(
    stack: Stack, tolerance: float | None, dense_limit: int, method: str | None
) -> Geometry:
    rows = sum(matrix.shape[0] for matrix, _ in stack.channels)
    small = min(rows, stack.dim) <= 4 * dense_limit and rows * stack.dim <= 50 * dense_limit**2
    if method == "dense" or (method is None and small):
        return dense.stack_geometry(stack, tolerance)
    return large.stack_geometry(stack, tolerance, dense_limit)


def _of_problem(
    problem: Problem, network: Any, tolerance: float | None, dense_limit: int, method: str | None
) -> Geometry:
    if not problem.complete:
        raise InputError(
            f"geometry: this process holds {len(problem.agents)} of {problem.n} agents; "
            "load the whole problem to see its geometry"
        )
    if network is not None:
        network = as_network(network, problem.n)
    if problem.limited:
        problem = Reduction.of(problem, InProcess(Network.complete(problem.n))).problem
    terms = (problem, network, tolerance, dense_limit)
    found: Geometry | None = None
    if method == "dense" or (method is None and dense.fits(problem, dense_limit)):
        found = dense.problem_geometry(*terms)
    elif method is None:
        found = dense.by_fewer_rows(*terms)
    return large.problem_geometry(*terms) if found is None else found
