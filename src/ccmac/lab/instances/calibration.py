"""Personal models calibrated to published population totals.

    outcome of person i in sample k:  y_ik = X_ik x_i + U_ik z + noise

    x_i                             the person's own effects; z = effects common to the population
    A_i x_i + B_i z = b_i, summed   predictions summed over everybody meet the published total of
                                    each stratum: row s of (A_i, B_i) adds up the rows of (X_i, U_i)
                                    that fall into stratum s; b_i are the person's expected part
    C_i x_i = c_i                   own effects sum to zero (else the intercept would be shared
                                    between x_i and z)
    D_i z = e_i                     persons measured with a reference device know one combination of
                                    the common effects
    f_i                             mean squared error of the person's samples, plus ridge on x_i
                                    and the person's part of a ridge on z

Persons with different designs U_i have different B_i: that is what makes chi larger than one.
"""

from __future__ import annotations

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.lab.instances.base import Instance
from ccmac.lab.instances.reference import solve_kkt
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem


def calibration(
    seed: int = 0,
    persons: int = 8,
    *,
    own: int = 3,
    common: int = 4,
    samples: int = 12,
    strata: int = 2,
    ridge: float = 0.1,
) -> Instance:
    """Persons on a random 3-regular (else ring) network with the exact calibrated models.

    Published totals are those of the true effects, which also satisfy the C_i and D_i: feasible by
    construction. Facts: ``parameter_error``, the root mean square distance of the calibrated
    effects to the true ones, and ``objective``.
    """
    if min(persons, own, common, strata) < 1 or samples < strata or not ridge > 0:
        raise InputError(
            f"calibration: persons = {persons}, own = {own}, common = {common}, "
            f"samples = {samples}, strata = {strata}, ridge = {ridge}; "
            "take positive sizes, samples >= strata and ridge > 0"
        )
    random = np.random.default_rng(seed)
    z_true = random.standard_normal(common)
    device = random.standard_normal((1, common))
    agents, truths = [], []
    for i in range(persons):
        x_true = random.standard_normal(own)
        x_true -= x_true.mean()
        truths.append(x_true)
        X = random.standard_normal((samples, own))
        U = random.standard_normal((samples, common)) + random.standard_normal(common)
        y = X @ x_true + U @ z_true + 0.3 * random.standard_normal(samples)
        member = np.eye(strata)[:, np.arange(samples) % strata] / samples
        reference = i % 4 == 0
        agents.append(
            Agent(
                _fit(X, U, y, ridge, persons),
                A=member @ X,
                B=member @ U,
                b=member @ (X @ x_true + U @ z_true),
                C=np.ones((1, own)),
                c=np.zeros(1),
                D=device if reference else None,
                e=device @ z_true if reference else None,
            )
        )
    problem = Problem(agents)
    solution = solve_kkt(problem)
    true = np.concatenate([*truths, z_true])
    facts = {
        "parameter_error": float(np.sqrt(np.mean((solution.vector - true) ** 2))),
        "objective": solution.objective,
    }
    network = (
        Network.random_regular(persons, 3, seed)
        if persons >= 4 and persons % 2 == 0
        else Network.ring(persons)
    )
    return Instance(f"calibration({seed})", problem, network, solution.x, solution.z, facts)


def _fit(X: Array, U: Array, y: Array, ridge: float, persons: int) -> Quadratic:
    """||X x + U z - y||^2/(2 samples) + ridge (||x||^2 + ||z||^2/persons)/2, less a constant."""
    design = np.hstack([X, U])
    penalty = np.concatenate([np.full(X.shape[1], ridge), np.full(U.shape[1], ridge / persons)])
    return Quadratic(design.T @ design / len(y) + np.diag(penalty), design.T @ y / len(y))
