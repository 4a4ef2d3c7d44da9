"""Vertical classification: logistic regression and the linear support vector machine.

Objectives as in scikit-learn, with the intercept unpenalized and weights s_j of the rows:

    VerticalLogisticRegression   C sum_j s_j log-loss_j + ((1 - r)/2) ||w||^2 + r ||w||_1
    VerticalSVC                  C sum_j s_j max(0, 1 - y_j (x_j'w + b)) + (1/2) ||w||^2

r is ``l1_ratio``. More than two classes: one multinomial model; for VerticalSVC one machine for
each pair of classes, and votes.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from ccmac.inputs import Array, positive
from ccmac.vfl.estimators import VerticalEstimator, estimator, score_inputs
from ccmac.vfl.formulation import VerticalData
from ccmac.vfl.inference import Distribution
from ccmac.vfl.regressors import l1_share
from ccmac.vfl.selection import judged

VALUE = 0.1  # times tol, squared: an error of the value that will do for logistic losses


class VerticalClassifier(ClassifierMixin, VerticalEstimator):  # type: ignore[misc]
    """Classes of any kind, from scores."""

    classes_: NDArray[Any]

    def _classified(self, X: Any, y: Any, sample_weight: Any) -> VerticalData:
        """Tables and labels, classes numbered."""
        data = self._read(X, y, "multinomial", sample_weight)
        self.classes_ = np.array(data.classes)
        return data

    def decision_function(self, X: Any) -> Any:
        """Scores: one for each class, or one alone where there are two classes."""
        tables = self._aligned(X)[0]
        return self._keyed(tables, self._decided(self._summed(tables)), self.classes_)

    def _decided(self, scores: Array) -> Array:
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of every row, in the order of the first fitted party's rows.

        A Series by their keys where X holds the parties' own data frames.
        """
        tables = self._aligned(X)[0]
        return self._keyed(tables, self._labelled(self._summed(tables)))

    def _labelled(self, scores: Array) -> NDArray[Any]:
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is met."""
        predicted, y, weights = score_inputs(self, X, y, sample_weight)
        return float(np.average(predicted == np.ravel(y), weights=weights))

    def _two_class(
        self, data: VerticalData, loss: str, ridge: float, l1: float = 0.0, **solved: float
    ) -> Any:
        """(weights, intercept) where class 1 is +1."""
        signs = np.where(data.y > 0, 1.0, -1.0)
        binary = VerticalData(
            data.tables, data.places, signs, data.classes, data.weights, outputs=1
        )
        problem = self._solved(binary, self._model(binary, loss, ridge, l1=l1), **solved)
        if loss == "logistic" and not l1:
            self._infers(Distribution("logistic"), data, problem, ridge * data.total)
        return problem.weights(self.result_), problem.intercept(self.result_)[0]


@estimator
class Logistic(VerticalClassifier):
    """What logistic regressions share, whatever their C."""

    _: KW_ONLY
    l1_ratio: float = 0.0

    def _learned(self, data: VerticalData, C: float) -> Self:
        """Classes that are numbered, from the parties' columns."""
        ratio = l1_share(self, self.l1_ratio)
        penalty = 1.0 / (C * data.total)
        ridge = penalty * (1.0 - ratio)
        l1 = penalty * ratio
        value = 0.0 if l1 else VALUE
        if len(data.classes) == 2:
            w, b = self._two_class(data, "logistic", ridge, l1, value=value, bend=0.25)
            self.coef_, self.intercept_ = w[None, :], np.array([b])
            return self
        model = self._model(data, "multinomial", ridge, l1=l1)
        problem = self._solved(data, model, value=value, bend=0.25)
        self.coef_ = np.ascontiguousarray(problem.weights(self.result_).T)
        self.intercept_ = problem.intercept(self.result_)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, a row for each row, with keys as :meth:`predict` has."""
        tables = self._aligned(X)[0]
        scores = self._summed(tables)
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return self._keyed(tables, np.asarray(softmax(scores, axis=1)), self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms."""
        return np.log(self.predict_proba(X))


@estimator
class VerticalLogisticRegression(Logistic):
    """Logistic regression over columns that different parties own.

    Parameters
    ----------
    C : float
        Inverse of the penalty, as in scikit-learn.
    l1_ratio : float
        Part of the absolute values in the penalty, 0 to 1.
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
        The proved error, in units in which columns and labels have a deviation of about one; with
        absolute values in the penalty a hundredth of it is that of the value.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalLogisticRegression
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = np.sign(tables["bank"][:, 0] + tables["shop"][:, 1])
    >>> model = VerticalLogisticRegression().fit(tables, y)
    >>> model.coef_.shape, model.score(tables, y) > 0.9
    ((1, 5), True)
    """

    C: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the classes y from the parties' columns."""
        free = isinstance(self.C, float) and math.isinf(self.C) and self.C > 0
        C = math.inf if free else positive("VerticalLogisticRegression, C", self.C)
        return self._learned(self._classified(X, y, sample_weight), C)


@estimator
class VerticalLogisticRegressionCV(Logistic):
    """Logistic regression whose C is chosen by cross-validation: the least log-loss.

    ``C_`` is the choice, ``scores_`` has for every C the log-loss, the accuracy and, of two
    classes, ROC-AUC and the calibration error of rows that were left out. Folds are shuffled, with
    the same shares of classes; parties prepare their columns anew in each.

    Parameters
    ----------
    Cs : sequence of float
        Inverses of the penalty to choose from.
    cv : int
        Number of folds.
    l1_ratio : float
        Part of the absolute values in the penalty, 0 to 1.
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
        The proved error, in units in which columns and labels have a deviation of about one; with
        absolute values in the penalty a hundredth of it is that of the value.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalLogisticRegressionCV
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((60, 2)), "shop": random.standard_normal((60, 3))}
    >>> y = np.sign(tables["bank"][:, 0] + tables["shop"][:, 1] + random.standard_normal(60))
    >>> VerticalLogisticRegressionCV(Cs=(0.1, 1.0), cv=3).fit(tables, y).C_
    1.0
    """

    Cs: Any = (0.01, 0.1, 1.0, 10.0, 100.0)
    cv: int = 5

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C, then learn the classes y from all rows."""
        data = self._classified(X, y, sample_weight)
        s = np.ones(data.rows) if data.weights is None else data.weights
        folds = list(StratifiedKFold(self.cv, shuffle=True, random_state=0).split(s, data.y))
        options = self.get_params(deep=False) | {"parties": None, "key": None}
        options = {name: value for name, value in options.items() if name not in ("Cs", "cv")}
        two = len(data.classes) == 2
        labels = np.where(data.y > 0, 1.0, -1.0) if two else data.y
        self.scores_: dict[float, dict[str, float]] = {}
        for C in self.Cs:
            scores = np.zeros((data.rows, 1 if two else len(data.classes)))
            model = VerticalLogisticRegression(C, **options)
            for fit, left in folds:
                train, test = (
                    {t.party: t.taken(rows).X for t in data.given} for rows in (fit, left)
                )
                model.fit(train, data.y[fit], s[fit])
                scores[left] = np.reshape(model.decision_function(test), (len(left), -1))
            self.scores_[C] = judged("logistic" if two else "multinomial", labels, scores)
        self.C_ = min(self.scores_, key=lambda C: self.scores_[C]["log_loss"])
        return self._learned(data, self.C_)


@estimator
class VerticalSVC(VerticalClassifier):
    """The linear support vector machine over columns that different parties own.

    With K > 2 classes there is a row of ``coef_`` for each pair (i, j), i < j, positive for i.

    Parameters
    ----------
    C : float
        Inverse of the penalty, as in scikit-learn.
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
        The proved error of the value, in units in which columns have a deviation of about one.
    max_iter : int
        Limit of iterations.
    warm_start : bool
        Start from the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.vfl import VerticalSVC
    >>> random = np.random.default_rng(0)
    >>> tables = {"bank": random.standard_normal((40, 2)), "shop": random.standard_normal((40, 3))}
    >>> y = np.sign(tables["bank"][:, 0] + tables["shop"][:, 1])
    >>> model = VerticalSVC().fit(tables, y)
    >>> model.coef_.shape, model.score(tables, y) > 0.9
    ((1, 5), True)
    """

    C: float = 1.0
    _: KW_ONLY
    tol: float = 1e-8

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the classes y from the parties' columns."""
        C = positive("VerticalSVC, C", self.C)
        data = self._classified(X, y, sample_weight)
        if len(data.classes) == 2:
            w, b = self._two_class(data, "hinge", 1.0 / (C * data.total))
            self.coef_, self.intercept_ = w[None, :], np.array([b])
            return self
        rows = []
        offsets = []
        iterations = 0
        for i, j in combinations(range(len(data.classes)), 2):
            pair = data.selected(np.flatnonzero((data.y == i) | (data.y == j)))
            pair.y = np.where(pair.y == i, 1.0, -1.0)
            w, b = self._two_class(pair, "hinge", 1.0 / (C * pair.total))
            rows.append(w)
            offsets.append(b)
            iterations += self.n_iter_
        self.coef_, self.intercept_ = np.array(rows), np.array(offsets)
        self.n_iter_ = iterations
        return self

    def _votes(self, scores: Array) -> tuple[Array, Array]:
        """Votes of the pairs, and the confidence behind them, for each class."""
        k = len(self.classes_)
        votes, trust = np.zeros((2, len(scores), k))
        for column, (i, j) in zip(scores.T, combinations(range(k), 2), strict=True):
            votes[:, i] += column > 0
            votes[:, j] += column <= 0
            trust[:, i] += column
            trust[:, j] -= column
        return votes, trust

    def _decided(self, scores: Array) -> Array:
        """Votes of the pairs with their confidence; the margin where there are two classes."""
        if len(self.classes_) == 2:
            return np.asarray(scores[:, 0])
        votes, trust = self._votes(scores)
        return np.asarray(votes + trust / (3.0 * (np.abs(trust) + 1.0)))

    def _labelled(self, scores: Array) -> NDArray[Any]:
        if len(self.classes_) == 2:
            return super()._labelled(scores)
        return np.asarray(self.classes_[self._decided(scores).argmax(1)])
