"""``ccmac.geometry``: Friedrichs angle, cross factor, ranks, who causes the overlap.

By singular value decompositions of row bases: everything, to rounding.
"""

from __future__ import annotations

from typing import Any

from ccmac.angles.dense import by_fewer_rows, fits, problem_geometry, stack_geometry
from ccmac.angles.report import Geometry
from ccmac.errors import InputError
from ccmac.inputs import nonnegative, of_kind, whole
from ccmac.limits import Reduction
from ccmac.network import Network, as_network
from ccmac.problem import Problem
from ccmac.runtime import InProcess
from ccmac.stack import Stack
from ccmac.workspace.scales import refuse_extreme

MANY = 1000  # equations from which on fewer are looked for
TOO_LARGE = (
    "geometry: {} needs dense decompositions beyond dense_limit = {}; pass a larger dense_limit="
)


def geometry(
    problem: Problem | Stack,
    *,
    network: Network | str | Any | None = None,
    tolerance: float | None = None,
    dense_limit: int = 2000,
) -> Geometry:
    """How the channels of ``problem`` overlap; no communication, all agents in one process.

    Principal angles below ``tolerance`` count as exact common directions and are removed. The
    default is 1e-10, or 100 eps times the condition of the equilibrated rows where that is more.
    ``dense_limit`` is the largest size of a dense decomposition; what needs a larger one is
    refused. A network only adds kappa_W: the
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
    of_kind("geometry, problem", problem, (Problem, Stack), "a ccmac.Problem or Stack")
    if tolerance is not None:
        nonnegative("geometry, tolerance", tolerance)
    dense_limit = whole("geometry: dense_limit", dense_limit)
    try:
        if isinstance(problem, Stack):
            return _of_stack(problem, tolerance, dense_limit)
        return _of_problem(problem, network, tolerance, dense_limit)
    except (ArithmeticError, ValueError) as error:
        refuse_extreme(problem, error)
        raise


def _of_stack(stack: Stack, tolerance: float | None, limit: int) -> Geometry:
    rows = sum(matrix.shape[0] for matrix, _ in stack.channels)
    if min(rows, stack.dim) > 4 * limit or rows * stack.dim > 50 * limit**2:
        raise InputError(TOO_LARGE.format(f"a stack of {rows} x {stack.dim}", limit))
    return stack_geometry(stack, tolerance)


def _of_problem(problem: Problem, network: Any, tolerance: float | None, limit: int) -> Geometry:
    if not problem.complete:
        raise InputError(
            f"geometry: this process holds {len(problem.agents)} of {problem.n} agents; "
            "load the whole problem to see its geometry"
        )
    if network is not None:
        network = as_network(network, problem.n)
    if problem.limited:
        problem = Reduction.of(problem, InProcess(Network.complete(problem.n))).problem
    dense = fits(problem, limit)
    if dense and problem.m <= MANY:
        return problem_geometry(problem, network, tolerance)
    found = by_fewer_rows(problem, network, tolerance, limit)
    if found is None and dense:
        return problem_geometry(problem, network, tolerance)
    if found is None:
        sizes = f"m = {problem.m} with {sum(problem.d.values())} entries of x and q = {problem.q}"
        raise InputError(TOO_LARGE.format(sizes, limit))
    return found
