"""Vertical generalized linear models with a logarithmic link: means exp(x'w + b + offset).

Objectives as in scikit-learn, with the intercept unpenalized and weights s_j of the rows,

    (1/2W) sum_j s_j d(y_j, mu_j) + (alpha/2) ||w||^2,    W = sum_j s_j,

d the unit deviance of a variance mu^power: Poisson 1, gamma 2, compound Poisson between, inverse
Gaussian 3 (:mod:`ccmac.objectives.deviance`). The last is not convex: what is found there is a
minimum near the start, its status ``converged``.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_tweedie_score

from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative
from ccmac.texts import shown
from ccmac.vfl.estimators import estimator
from ccmac.vfl.inference import Distribution
from ccmac.vfl.regressors import VerticalRegressor


class LogLink(VerticalRegressor):
    """Means exp(x'w + b) of a variance mu^power."""

    power: float
    alpha: float

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Self:
        """Learn y from the parties' columns.

        ``exposure`` multiplies the means; ``offset`` is its logarithm.
        """
        alpha = nonnegative(f"{type(self).__name__}, alpha", self.alpha)
        power = float(self.power)
        data = self._read(X, y, "tweedie", sample_weight, _offset(offset, exposure))
        mean = float(np.average(data.y, weights=data.weights))
        model = self._model(data, "tweedie", alpha, power=power)
        problem = self._solved(data, model, bend=abs(mean) ** (2.0 - power))
        self._keep(problem)
        self._infers(Distribution("tweedie", power), data, problem, alpha * data.total)
        losses: Any = problem.agents[0].objective
        loss = losses.z_part
        if self.fit_intercept:
            loss, scores = loss.loss, loss.fitted(np.asarray(self.result_.z))
        else:
            scores = np.asarray(self.result_.z)
        if not loss.within(scores):
            warnings.warn(
                f"{type(self).__name__}: some mean is a hundred times off its observation; the "
                "deviance was continued by a parabola there, see ccmac.objectives.Tweedie",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """The mean of every row, in the order of the first fitted party's rows, with their keys."""
        tables, _, _, known = self._aligned(X, offset=_offset(offset, exposure))
        scores = self._summed(tables)[:, 0]
        return self._keyed(tables, np.exp(scores if known is None else scores + known))

    def _labelled(self, scores: Array) -> Array:
        return np.exp(scores[:, 0])

    def _score(self, y: Any, predicted: Array, weights: Any) -> float:
        """The share of the deviance that is explained."""
        return float(d2_tweedie_score(y, predicted, sample_weight=weights, power=self.power))


def _offset(offset: Any, exposure: Any) -> Any:
    if exposure is None:
        return offset
    if offset is not None:
        raise InputError("vfl: offset is the logarithm of an exposure; give one of them")
    if not (np.asarray(exposure) > 0).all():
        raise InputError(f"vfl: exposure is {shown(exposure)}; give positive numbers")
    return np.log(exposure)


@estimator
class VerticalTweedie(LogLink):
    """Means exp(x'w + b) of a variance mu^power, over columns that different parties own.

    Parameters
    ----------
    power : float
        From 1 (Poisson) to 2 (gamma), or 3 (inverse Gaussian).
    alpha : float
        Factor of the squared penalty, as in scikit-learn; 0 stands for none.
    fit_intercept : bool
        Whether a constant is fitted; it is never penalized.
    standardize : bool
        Divide every column by its standard deviation; each party does it alone.
    preprocess : "standard", transformer or mapping, optional
        What turns a party's own columns into numbers: medians, scales and one-hot categories, or a
        scikit-learn transformer; each party fits it alone (:mod:`ccmac.vfl.preparation`).
    parties : int, list or mapping, optional
        How the columns of one table are dealt out.
    key : str, optional
        The column that joins the rows; by default the tables' index.
    join : {"strict", "inner"}
        Refuse keys that some party lacks, or keep the common ones.
    shares : array_like, tuple or str, optional
        Shares of the predictions; equal by default (:func:`ccmac.vfl.problem`).
    network : Network, str, graph or matrix, optional
        Who talks to whom; by default all to all.
    method : str or Method
        As in :func:`ccmac.solve`.
    tol : float
        The proved error, in units in which columns have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalTweedie
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> means = np.exp(0.5 * tables["bank"][:, 0] - 0.3 * tables["shop"][:, 1])
    >>> model = VerticalTweedie(alpha=0.01).fit(tables, means)
    >>> model.coef_.shape, model.score(tables, means) > 0.9
    ((5,), True)
    """

    power: float = 1.5
    _: KW_ONLY
    alpha: float = 1.0


@estimator
class VerticalPoisson(LogLink):
    """Counts: Poisson regression, over columns that different parties own.

    Parameters
    ----------
    alpha : float
        Factor of the squared penalty, as in scikit-learn; 0 stands for none.
    fit_intercept : bool
        Whether a constant is fitted; it is never penalized.
    standardize : bool
        Divide every column by its standard deviation; each party does it alone.
    preprocess : "standard", transformer or mapping, optional
        What turns a party's own columns into numbers: medians, scales and one-hot categories, or a
        scikit-learn transformer; each party fits it alone (:mod:`ccmac.vfl.preparation`).
    parties : int, list or mapping, optional
        How the columns of one table are dealt out.
    key : str, optional
        The column that joins the rows; by default the tables' index.
    join : {"strict", "inner"}
        Refuse keys that some party lacks, or keep the common ones.
    shares : array_like, tuple or str, optional
        Shares of the predictions; equal by default (:func:`ccmac.vfl.problem`).
    network : Network, str, graph or matrix, optional
        Who talks to whom; by default all to all.
    method : str or Method
        As in :func:`ccmac.solve`.
    tol : float
        The proved error, in units in which columns have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalPoisson
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> means = np.exp(0.5 * tables["bank"][:, 0] - 0.3 * tables["shop"][:, 1])
    >>> model = VerticalPoisson(alpha=0.01).fit(tables, means)
    >>> model.coef_.shape, model.score(tables, means) > 0.9
    ((5,), True)
    """

    alpha: float = 1.0
    power: ClassVar[float] = 1.0  # type: ignore[misc]


@estimator
class VerticalGamma(LogLink):
    """Positive amounts of constant relative spread: gamma regression.

    Parameters
    ----------
    alpha : float
        Factor of the squared penalty, as in scikit-learn; 0 stands for none.
    fit_intercept : bool
        Whether a constant is fitted; it is never penalized.
    standardize : bool
        Divide every column by its standard deviation; each party does it alone.
    preprocess : "standard", transformer or mapping, optional
        What turns a party's own columns into numbers: medians, scales and one-hot categories, or a
        scikit-learn transformer; each party fits it alone (:mod:`ccmac.vfl.preparation`).
    parties : int, list or mapping, optional
        How the columns of one table are dealt out.
    key : str, optional
        The column that joins the rows; by default the tables' index.
    join : {"strict", "inner"}
        Refuse keys that some party lacks, or keep the common ones.
    shares : array_like, tuple or str, optional
        Shares of the predictions; equal by default (:func:`ccmac.vfl.problem`).
    network : Network, str, graph or matrix, optional
        Who talks to whom; by default all to all.
    method : str or Method
        As in :func:`ccmac.solve`.
    tol : float
        The proved error, in units in which columns have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalGamma
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> means = np.exp(0.5 * tables["bank"][:, 0] - 0.3 * tables["shop"][:, 1])
    >>> model = VerticalGamma(alpha=0.01).fit(tables, means)
    >>> model.coef_.shape, model.score(tables, means) > 0.9
    ((5,), True)
    """

    alpha: float = 1.0
    power: ClassVar[float] = 2.0  # type: ignore[misc]


@estimator
class VerticalInverseGaussian(LogLink):
    """Positive amounts whose spread grows faster than they do.

    Parameters
    ----------
    alpha : float
        Factor of the squared penalty, as in scikit-learn; 0 stands for none.
    fit_intercept : bool
        Whether a constant is fitted; it is never penalized.
    standardize : bool
        Divide every column by its standard deviation; each party does it alone.
    preprocess : "standard", transformer or mapping, optional
        What turns a party's own columns into numbers: medians, scales and one-hot categories, or a
        scikit-learn transformer; each party fits it alone (:mod:`ccmac.vfl.preparation`).
    parties : int, list or mapping, optional
        How the columns of one table are dealt out.
    key : str, optional
        The column that joins the rows; by default the tables' index.
    join : {"strict", "inner"}
        Refuse keys that some party lacks, or keep the common ones.
    shares : array_like, tuple or str, optional
        Shares of the predictions; equal by default (:func:`ccmac.vfl.problem`).
    network : Network, str, graph or matrix, optional
        Who talks to whom; by default all to all.
    method : str or Method
        As in :func:`ccmac.solve`.
    tol : float
        The proved error, in units in which columns have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalInverseGaussian
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> means = np.exp(0.5 * tables["bank"][:, 0] - 0.3 * tables["shop"][:, 1])
    >>> model = VerticalInverseGaussian(alpha=0.01).fit(tables, means)
    >>> model.coef_.shape, model.score(tables, means) > 0.9
    ((5,), True)
    """

    alpha: float = 1.0
    power: ClassVar[float] = 3.0  # type: ignore[misc]
