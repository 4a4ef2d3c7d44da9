"""J channels: projectors, intervals from G_J, polynomials with certificates, and the ledger."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.angles.measure import geometry
from ccmac.errors import InputError
from ccmac.ledger import Cost
from ccmac.methods.apapc import Apapc
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.paper.realizations.stacked import stacked
from ccmac.realizations.base import Realized
from ccmac.runtime import InProcess
from ccmac.stack import Stack
from ccmac.workspace import Workspace
from paper.realizations.flavours import fresh, normal_matrix, positive_ends

Array = NDArray[np.float64]


def alone() -> InProcess:
    """The runtime of a Stack."""
    return InProcess(Network.complete(1))


DIM = 12


def example(seed: int = 0, rows: tuple[int, ...] = (2, 3, 2)) -> tuple[Stack, Array]:
    """A feasible stack (rank-deficient second channel, sparse third) and its dense solution."""
    random = np.random.default_rng(seed)
    matrices = [random.standard_normal((r, DIM)) for r in rows]
    if len(rows) > 1:
        matrices[1][-1] = matrices[1][0] + matrices[1][1]
    point = random.standard_normal(DIM)
    basis, _ = np.linalg.qr(random.standard_normal((DIM, DIM)))
    H = (basis * np.geomspace(1, 20, DIM)) @ basis.T
    g = random.standard_normal(DIM)
    channels = [(sp.csr_array(M) if j == 2 else M, M @ point) for j, M in enumerate(matrices)]
    M = np.vstack(matrices)
    kernel = np.linalg.svd(M)[2][np.linalg.matrix_rank(M) :].T
    base = np.linalg.pinv(M) @ (M @ point)
    w = base + kernel @ np.linalg.solve(kernel.T @ H @ kernel, kernel.T @ (g - H @ base))
    return Stack(Quadratic(H, g), channels), w


def run(realized: Realized, solution: Array) -> int:
    iteration = Apapc(realized)
    state = fresh(iteration)
    for k in range(1, 1000):
        state = iteration.step(state)
        if np.linalg.norm(state.w - solution) <= 1e-9:
            return k
    raise AssertionError("no convergence")


@pytest.mark.parametrize("rule", ["exact", "paper", "tight"])
@pytest.mark.parametrize("rows", [(3,), (2, 3), (2, 3, 2), (1, 3, 1, 2)])
def test_solves_and_charges_affine_calls_only(rule: str, rows: tuple[int, ...]) -> None:
    stack, solution = example(rows=rows)
    runtime = InProcess(Network.complete(1))
    realized = stacked(Workspace(stack, runtime), rule=rule)
    k = run(realized, solution)
    assert runtime.ledger.of("solve") == Cost(gradients=k, affine=2 * realized.degree * k)
    low, high = positive_ends(normal_matrix(realized.system))
    assert realized.system.interval.low <= low * (1 + 1e-9)
    assert high <= realized.system.interval.high * (1 + 1e-9)


def test_exact_whitening_attains_the_multi_channel_factor() -> None:
    stack, _ = example()
    realized = stacked(Workspace(stack, alone()))
    low, high = positive_ends(normal_matrix(realized.system))
    factor = geometry(stack).multi_channel_factor
    assert factor == pytest.approx(np.sqrt(high / low), rel=1e-8)
    assert realized.details["multi_channel_factor"] == pytest.approx(factor, rel=1e-8)


@pytest.mark.parametrize("rule", ["paper", "tight"])
def test_polynomials_do_not_change_the_multi_channel_factor(rule: str) -> None:
    """chi_J belongs to the row spaces; the interval of the normalized stack is wider."""
    stack, _ = example()
    realized = stacked(Workspace(stack, alone()), rule=rule)
    factor = geometry(stack).multi_channel_factor
    assert realized.details["multi_channel_factor"] == pytest.approx(factor, rel=1e-8)
    assert np.sqrt(realized.system.interval.ratio) > 1.05 * factor


def test_supplied_certificates_need_no_factorization() -> None:
    stack, solution = example()
    spectra = []
    for matrix, _ in stack.channels:
        M = matrix.toarray() if sp.issparse(matrix) else matrix
        values = np.linalg.svd(M, compute_uv=False)
        positive = values[values > 1e-10]
        spectra.append((0.5 * positive[-1] ** 2, 2 * positive[0] ** 2))
    factor = geometry(stack).multi_channel_factor
    assert factor is not None
    realized = stacked(
        Workspace(stack, alone()), rule="paper", spectra=spectra, factor=1.1 * factor
    )
    assert realized.system.interval.source == "supplied"
    low, high = positive_ends(normal_matrix(realized.system))
    assert realized.system.interval.low <= low
    assert high <= realized.system.interval.high
    run(realized, solution)


def test_refusals_say_what_to_do() -> None:
    stack, _ = example()
    with pytest.raises(InputError, match="rule 'odd' is unknown"):
        stacked(Workspace(stack, alone()), rule="odd")
    with pytest.raises(InputError, match="1 spectra for 3 channels"):
        stacked(Workspace(stack, alone()), rule="paper", spectra=[(1.0, 2.0)])
    with pytest.raises(InputError, match="network: has 3 agents but the problem has 1"):
        stacked(Workspace(stack, InProcess(Network.ring(3))))
    wide = Stack(
        Quadratic(sp.eye_array(5000, format="csr"), np.zeros(5000)),
        [(sp.eye_array(1, 5000, format="csr"), None)],
    )
    with pytest.raises(InputError, match="dimension 5000 exceeds 4000"):
        stacked(Workspace(wide, alone()))
