"""What rounding may have added to the gradients of a problem in x alone."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import explicit
from ccmac.certificates.explicit import ExplicitProof
from ccmac.linalg.tolerances import EPS


@pytest.mark.parametrize("left", [0.0, 7.0])
def test_the_rounding_of_gradients_in_closed_form(left: float) -> None:
    """|x| = 5, L = 10, |grad| = 13, |A| = 3, |y| = 2; of grad + A'y ``left`` is left."""
    gradient = np.array([5.0, 12.0])
    proof: Any = object.__new__(ExplicitProof)
    back = -gradient + np.array([left, 0.0])
    proof.work = Fake(
        ledger=Fake(charge=lambda **units: None), local=Fake(project=lambda v: 0.25 * v),
        coupling=Fake(A=Fake(adjoint_common=lambda price: back)),
    )  # fmt: skip
    proof.space = Fake(count=1, x_of=lambda v, k: v)
    proof.explicit = Fake(x_parts=[Fake(gradient_at=lambda x: gradient)])
    proof.L_x, proof._norms, proof.problem = [10.0], [3.0], Fake(m=4)
    said, squares = proof._gradients(np.array([3.0, 4.0]), np.array([0.0, 2.0]))
    assert said.tolist() == gradient.tolist()
    rounding = EPS * ((2 + 8) * (10 * 5 + 13 + 6) + 4 * 6)
    assert squares.shape == (1, 1)
    said = math.sqrt(squares[0, 0]) - 0.75 * left
    assert said == pytest.approx(2 * rounding, rel=1e-2 if left else 1e-9, abs=0.0)


def test_constants_are_those_of_agents_that_have_unknowns(monkeypatch: pytest.MonkeyPatch) -> None:
    """mu less what a decomposition may round; an agent without x bends nowhere."""
    monkeypatch.setattr(explicit, "EPS", 2.0**-5)
    monkeypatch.setattr(explicit, "right_hand_sides", lambda problem: Fake(b=np.zeros((3, 1))))
    table = Fake(
        mu_x=np.array([2.0, 0.5, 1.0]), L_x=np.array([4.0, 9.0, 1.0]), d=np.array([3, 0, 1]),
        L_z=np.array([1.0, 2.0, 4.0]),
    )  # fmt: skip
    problem = Fake(agents={0: None, 2: None})
    work: Any = Fake(space=None, runtime=None, problem=problem, curvature=table)
    known: Any = Fake(norms=np.array([3.0, 4.0, 12.0]))
    found = ExplicitProof(work, known)
    assert found.mu == min(2.0 - 2 * 2.0**-5 * 3 * 4.0, 1.0 - 2 * 2.0**-5)
    table.mu_x[2] = 9.0
    assert ExplicitProof(work, known).mu == 2.0 - 2 * 2.0**-5 * 3 * 4.0
    assert (found.L_x.tolist(), found.L_z) == ([4.0, 1.0], 7.0)
    assert found._norms.tolist() == [3.0, 12.0]
    assert found.norm == pytest.approx(13.0)
    table.d[:] = 0
    assert ExplicitProof(work, known).mu == math.inf
