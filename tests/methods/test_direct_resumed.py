"""cross-direct goes on from its checkpoint: the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ccmac
from pins.problems import posed


def test_a_resumed_refinement_has_the_same_bits(tmp_path: Path) -> None:
    """A tolerance beyond rounding, so that the method refines to its last step."""
    made = posed("quadratic")
    whole = ccmac.solve(made.problem, made.network, "cross-direct", tol=1e-30)
    assert whole.iterations > 1
    kept = {"path": tmp_path / "kept", "every": 1}
    ccmac.solve(
        made.problem, made.network, "cross-direct", tol=1e-30, checkpoint=kept, max_iterations=1
    )
    again = ccmac.solve(made.problem, made.network, "cross-direct", tol=1e-30, checkpoint=kept)
    assert again.iterations == whole.iterations
    assert np.array_equal(np.concatenate(again.x), np.concatenate(whole.x))
    assert np.array_equal(again.z, whole.z)
