"""Reference weights against independent solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.paper.experiments import task

RNG = np.random.default_rng(5)
X = sp.csr_array(sp.random(60, 9, density=0.4, random_state=RNG))
Y = np.sign(RNG.standard_normal(60))


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_ridge_solves_the_regularized_problem(rho: float, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = X.toarray()
    stacked = np.vstack([dense / np.sqrt(60), np.sqrt(rho / 60) * dense, np.sqrt(0.01) * np.eye(9)])
    right = np.concatenate([Y / np.sqrt(60), np.zeros(69)])
    want = np.linalg.lstsq(stacked, right, rcond=None)[0]
    assert task.ridge(X, Y, 0.01, rho) == pytest.approx(want, rel=1e-10)
    monkeypatch.setattr(task, "DENSE", 1)
    assert task.ridge(X, Y, 0.01, rho) == pytest.approx(want, rel=1e-9)


def test_logistic_agrees_with_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    model = linear.LogisticRegression(
        C=1 / (60 * 0.01), fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cholesky"
    ).fit(X.toarray(), Y)
    assert task.logistic(X, Y, 0.01) == pytest.approx(model.coef_[0], rel=1e-6)


def test_problems_without_a_reference_are_refused() -> None:
    for option in (("loss", "hinge"), ("l1", 0.1), ("regularization", 0.0)):
        with pytest.raises(InputError, match="use stop: certificate"):
            task.reference_weights("a1a-like", (option,))
