"""Vertical regression: ridge, lasso, elastic net, Huber, quantiles.

Objectives as in scikit-learn, with the intercept unpenalized and weights s_j of the rows:

    VerticalRidge        sum_j s_j (y_j - x_j'w - b)^2 + alpha ||w||^2
    VerticalElasticNet   (1/2W) sum_j s_j (y_j - x_j'w - b)^2 + alpha l1_ratio ||w||_1
                         + (alpha/2) (1 - l1_ratio) ||w||^2           (VerticalLasso: l1_ratio 1)
    VerticalQuantile     (1/W) sum_j s_j max(q r_j, (q - 1) r_j) + alpha ||w||_1,  r = y - x'w - b
    VerticalHuber        sum_j s_j (sigma + H((y_j - x_j'w - b)/sigma) sigma) + alpha ||w||^2

W = sum_j s_j; H(t) = t^2 up to epsilon, then 2 epsilon |t| - epsilon^2. Huber's objective is
jointly convex in (w, b, sigma), and b and sigma are fitted where the loss is evaluated
(:mod:`ccmac.objectives.concomitant`): one solve for all three. Its curvature is that of a scale
which is at least some share of the labels' deviation, tried from LEAST_SCALES downwards: a scale
above it is that of the objective itself.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative, positive
from ccmac.texts import shown
from ccmac.vfl.estimators import VerticalEstimator, estimator, score_inputs
from ccmac.vfl.formulation import VerticalData, VflProblem
from ccmac.vfl.inference import Distribution

VALUE = 0.01  # times tol, squared: an error of the value that will do for Huber
SMALLEST = 1e-6
LEAST_SCALES = (
    0.3,
    0.03,
    3e-3,
    3e-4,
    3e-5,
    SMALLEST,
)  # of the labels' deviation, one after the other


class VerticalRegressor(RegressorMixin, VerticalEstimator):  # type: ignore[misc]
    """Scores are the predictions."""

    def predict(self, X: Any) -> Any:
        """x'w + b of every row, in the order of the first fitted party's rows.

        A Series by their keys where X holds the parties' own data frames.
        """
        tables = self._aligned(X)[0]
        return self._keyed(tables, self._labelled(self._summed(tables)))

    def _labelled(self, scores: Array) -> Array:
        return np.asarray(scores[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2."""
        predicted, y, weights = score_inputs(self, X, y, sample_weight)
        return self._score(y, predicted, weights)

    def _score(self, y: Any, predicted: Array, weights: Any) -> float:
        return float(r2_score(y, predicted, sample_weight=weights))

    def _keep(self, problem: VflProblem) -> None:
        """The weights and the intercept that were found."""
        self.coef_ = problem.weights(self.result_)
        self.intercept_ = float(problem.intercept(self.result_)[0])

    def _fit(self, data: VerticalData, ridge: float, l1: float = 0.0) -> Self:
        problem = self._solved(data, self._model(data, "squared", ridge, l1=l1), bend=1.0)
        self._keep(problem)
        if not l1:
            self._infers(Distribution("squared"), data, problem, ridge * data.total)
        return self


@estimator
class VerticalRidge(VerticalRegressor):
    """Least squares with a squared penalty, over columns that different parties own.

    Parameters
    ----------
    alpha : float
        Factor of ||w||^2, as in scikit-learn.
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
        The proved error, in units in which columns and labels have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalRidge
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = tables["bank"][:, 0] + tables["shop"][:, 1]
    >>> model = VerticalRidge(alpha=0.1).fit(tables, y)
    >>> model.coef_.shape, round(model.score(tables, y), 4)
    ((5,), 1.0)
    """

    alpha: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn y from the parties' columns."""
        alpha = nonnegative("VerticalRidge, alpha", self.alpha)
        data = self._read(X, y, "squared", sample_weight)
        return self._fit(data, alpha / data.total)


@estimator
class VerticalLasso(VerticalRegressor):
    """Least squares with the penalty alpha ||w||_1.

    Parameters
    ----------
    alpha : float
        Factor of ||w||_1, as in scikit-learn.
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
        The proved error, in units in which columns and labels have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalLasso
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = tables["bank"][:, 0] + tables["shop"][:, 1]
    >>> model = VerticalLasso(alpha=0.01).fit(tables, y)
    >>> model.coef_.shape, int((abs(model.coef_) > 1e-6).sum())
    ((5,), 2)
    """

    alpha: float = 1.0
    _: KW_ONLY
    tol: float = 1e-9

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn y from the parties' columns."""
        alpha = nonnegative(f"{type(self).__name__}, alpha", self.alpha)
        ratio = l1_share(self, getattr(self, "l1_ratio", 1.0))
        data = self._read(X, y, "squared", sample_weight)
        return self._fit(data, alpha * (1.0 - ratio), alpha * ratio)


@estimator
class VerticalElasticNet(VerticalLasso):
    """Least squares with a penalty that mixes ||w||_1 and ||w||^2.

    ``tol`` bounds the value's error, of (1/2W) sum s_j (...)^2 + ... over the labels' variance.

    Parameters
    ----------
    alpha : float
        Factor of the penalty, as in scikit-learn.
    l1_ratio : float
        Part of the absolute values in it, 0 to 1.
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
        The proved error, in units in which columns and labels have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalElasticNet
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = tables["bank"][:, 0] + tables["shop"][:, 1]
    >>> model = VerticalElasticNet(alpha=0.01).fit(tables, y)
    >>> model.coef_.shape, model.score(tables, y) > 0.99
    ((5,), True)
    """

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5


@estimator
class VerticalHuber(VerticalRegressor):
    """Huber's loss with its scale: rows whose residual exceeds epsilon sigma count linearly.

    ``scale_`` is sigma, ``outliers_`` tells those rows. ``tol`` is the proved error of the weights
    or, where the ridge alpha sigma/W is too small for that, what proves the value to (tol/100)^2
    (of half the mean loss over the labels' deviation, times the square of the weights' size if
    above one). A scale below a millionth of the labels' deviation counts as that much; where the
    fit is that exact and alpha tiny, neither may be proved, and a warning says so.

    Parameters
    ----------
    epsilon : float
        Residuals beyond epsilon times the scale count linearly; at least 1.
    alpha : float
        Factor of ||w||^2.
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
        The proved error, in units in which columns and labels have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalHuber
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = tables["bank"][:, 0] + tables["shop"][:, 1] + 0.1 * random.standard_normal(40)
    >>> model = VerticalHuber().fit(tables, y)
    >>> model.coef_.shape, model.score(tables, y) > 0.9
    ((5,), True)
    """

    epsilon: float = 1.35
    _: KW_ONLY
    alpha: float = 1e-4
    tol: float = 1e-4

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn y from the parties' columns."""
        epsilon = positive("VerticalHuber, epsilon", self.epsilon)
        if epsilon < 1:
            raise InputError(f"VerticalHuber, epsilon: is {epsilon}; it must be at least 1")
        alpha = nonnegative("VerticalHuber, alpha", self.alpha)
        data = self._read(X, y, "huber", sample_weight)
        weights = np.ones(data.rows) if data.weights is None else data.weights
        spread = math.sqrt(float(np.cov(data.y, aweights=weights, ddof=0))) if data.rows > 1 else 0
        iterations = 0
        start = None
        alone = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the scales that are tried
            for share in LEAST_SCALES:
                if alone and share > SMALLEST:
                    continue  # there the least is no harder than others
                least = share * (spread or 1.0)
                model = self._model(data, "huber", alpha / data.total, delta=epsilon, least=least)
                problem = self._solved(data, model, start, VALUE)
                start = self.result_
                alone = start.plan is not None and start.plan.realization == "range"
                iterations = iterations + self.n_iter_
                loss: Any = problem.agents[0].objective
                scale = loss.z_part.fitted(np.asarray(self.result_.z))[1]
                if scale > loss.z_part.least:
                    break
        self.n_iter_ = iterations
        self.scale_ = scale * problem.prediction_scale
        self._tell_unproved()
        self._keep(problem)
        tables, y, _, _ = self._aligned(X, y)  # rows of no weight as well
        residuals = np.ravel(y).astype(np.float64) - self._summed(tables)[:, 0]
        self.outliers_ = np.abs(residuals) > epsilon * self.scale_
        return self


@estimator
class VerticalQuantile(VerticalRegressor):
    """The quantile of y given the columns, as scikit-learn's QuantileRegressor.

    ``tol`` bounds the value: of the mean pinball loss over the labels' deviation.

    Parameters
    ----------
    quantile : float
        Between 0 and 1; 0.5 is the median.
    alpha : float
        Factor of ||w||_1.
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
        The proved error, in units in which columns and labels have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.


    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalQuantile
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> y = tables["bank"][:, 0] + random.standard_normal(60)
    >>> model = VerticalQuantile(0.9, alpha=0.01).fit(tables, y)
    >>> float(np.mean(y <= model.predict(tables) + 1e-6)) >= 0.9
    True
    """

    quantile: float = 0.5
    _: KW_ONLY
    alpha: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the quantile of y from the parties' columns."""
        quantile = positive("VerticalQuantile, quantile", self.quantile)
        alpha = nonnegative("VerticalQuantile, alpha", self.alpha)
        data = self._read(X, y, "quantile", sample_weight)
        model = self._model(data, "quantile", 0.0, l1=alpha, quantile=quantile)
        problem = self._solved(data, model)
        self._keep(problem)
        return self


def l1_share(estimator: Any, value: Any) -> float:
    """The share of the penalty that is ||w||_1."""
    ratio = nonnegative(f"{type(estimator).__name__}, l1_ratio", value)
    if ratio > 1:
        raise InputError(
            f"{type(estimator).__name__}, l1_ratio: is {shown(value)}; it must be between 0 and 1"
        )
    return ratio
