"""What the vertical estimators share: reading tables, solving, scores of new rows.

They are scikit-learn estimators (``pip install "ccmac[vfl]"``). X is a mapping or a list of the
parties' tables, or one table dealt out by ``parties``; rows are joined by the tables' index, or by
the column ``key``.
Penalties are named and scaled as in scikit-learn; ``tol`` is the certified error of
:func:`ccmac.solve`, in units in which labels and columns have a deviation of about one (``result_``
is in these units, ``coef_`` in those of the tables).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ccmac.api import solve
from ccmac.errors import AssumptionWarning, InputError
from ccmac.inputs import FLAG, Array, as_array, of_kind, positive
from ccmac.methods import Auto, CrossNewton
from ccmac.results import Result
from ccmac.texts import nearest, shown
from ccmac.vfl.alignment import align
from ccmac.vfl.formulation import VerticalData, VflProblem, formulated, places_of
from ccmac.vfl.inference import Distribution, Fitted, Inference
from ccmac.vfl.model import VerticalModel
from ccmac.vfl.preparation import applied, fitted
from ccmac.vfl.tables import PartyTable, dealt, is_one_table, one_table, read_tables

UNPENALIZED = 1e-11  # a ridge that moves weights by less than rounding moves those of most tables

estimator = dataclass(eq=False, repr=False)
"""Of a class of estimators: its fields are the parameters of its constructor."""


@estimator
class VerticalEstimator(BaseEstimator):  # type: ignore[misc]
    """One linear model of columns that different parties own."""

    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = False
    preprocess: Any = None
    parties: Any = None
    key: str | None = None
    join: str = "strict"
    shares: Any = None
    network: Any = None
    method: Any = "auto"
    tol: float = 1e-6
    max_iter: int = 100_000
    warm_start: bool = False

    # -- fitting -----------------------------------------------------------------------------------
    def _read(
        self, X: Any, y: Any, loss: str, sample_weight: Any, offset: Any = None
    ) -> VerticalData:
        """Tables, labels and weights, checked and joined; names of columns are kept."""
        for name in ("fit_intercept", "standardize", "warm_start"):
            of_kind(f"{type(self).__name__}, {name}", getattr(self, name), FLAG, "True or False")
        if y is None:
            raise InputError("vfl: requires y to be passed, but the target y is None")
        self._fitted: Fitted | None = None
        single = is_one_table(X)
        key = self.key
        if single:
            X = one_table(X, key)
            key = None
            if self.parties is None:
                warnings.warn(
                    "vfl: X is one table and parties is None, so there is one party and nothing "
                    "is split; give the parties' tables, or parties=",
                    AssumptionWarning,
                    stacklevel=4,
                )
        if not hasattr(y, "iloc"):
            try:
                y = column_or_1d(as_array("vfl: y", y), warn=True)
            except ValueError as error:
                raise InputError(f"vfl: {error}") from None
        elif hasattr(y, "columns") and len(y.columns) == 1:
            y = y.iloc[:, 0]
        if sample_weight is not None and not hasattr(sample_weight, "iloc"):
            sample_weight = as_array("vfl: sample_weight", sample_weight)
        self.preparations_: dict[str, Any] = {}
        data = VerticalData.read(
            X,
            y,
            loss,
            self.parties,
            weights=sample_weight,
            key=key,
            join=self.join,
            offset=offset,
            prepare=None if self.preprocess is None else self._prepared,
        )
        if single:
            validate_data(self, X, skip_check_array=True)
        else:
            names = [name for table in data.given for name in table.columns]
            self.n_features_in_ = len(names)
            if all(isinstance(name, str) for name in names):
                self.feature_names_in_ = np.array(names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        self._single = single
        self._tables = [(t.party, t.columns, t.named) for t in data.given]
        self._dealt = places_of(X, data.given, key)
        self._columns = [(t.columns, t.named) for t in data.tables]
        self._places = data.places
        self.n_rows_ = data.rows
        return data

    def _prepared(self, table: PartyTable) -> PartyTable:
        """A party's table in numbers, by what it learns from it now."""
        self.preparations_[table.party] = transformer = fitted(self.preprocess, table)
        return applied(transformer, table)

    def _model(self, data: VerticalData, loss: str, ridge: float, **more: Any) -> VerticalModel:
        """Loss and penalties of (1/W) sum_j s_j loss_j + ...; see :class:`VerticalModel`."""
        return VerticalModel(loss, data.rows, ridge, outputs=data.outputs, **more)

    def _solved(
        self,
        data: VerticalData,
        model: VerticalModel,
        start: Any = None,
        value: float = 0.0,
        bend: float = 0.0,
    ) -> VflProblem:
        """Solve; ``result_`` and ``n_iter_`` are set. ``start`` is a Solution to begin at.

        ``bend`` is the usual curvature of the loss: tables that are taller than wide, without a
        penalty, have one of UNPENALIZED times that in units of the columns' deviations.

        A smooth loss with a ridge r so small that rounding keeps cross-newton from proving ``tol``
        is solved to (``value`` times tol)^2 of its value: a gradient g proves |g|/r for the weights
        and |g|^2/(2r) for the value.
        """
        free = bend > 0 and not (model.ridge or model.l1) and len(data.columns) < data.rows
        if free:
            model = replace(model, ridge=UNPENALIZED * bend)
        problem = formulated(
            data,
            model,
            self.shares,
            None,
            intercept=self.fit_intercept,
            standardize=self.standardize or free,
            own_units=True,
        )
        if start is None and self.warm_start:
            start = getattr(self, "result_", None)
        penalty: Any = problem.agents[0].objective  # in the units of the solve
        ridge = penalty.x_part.constants(1)[1]
        tol = positive(f"{type(self).__name__}, tol", self.tol)
        if model.l1 and model.loss in ("logistic", "multinomial"):
            tol *= 0.01  # of the value
        method = self.method
        if method == "auto" and free:
            method = CrossNewton(reveal="range")
        elif method == "auto" and model.loss == "squared" and not model.l1:
            method = Auto(reveal="range")
        if value and ridge and isinstance(method, str) and method in ("auto", "cross-newton"):
            tol = tol * max(1.0, value * math.sqrt(2.0 / ridge))
            method = "cross-newton"
        self.result_: Result = solve(
            problem,
            self.network,
            method,
            tol,
            max_iterations=self.max_iter,
            warm_start=start if _fits(start, problem) else None,
            progress=False,
        )
        self.n_iter_ = max(1, self.result_.iterations)
        self._tell_unproved()
        return problem

    def _tell_unproved(self) -> None:
        """A warning where the tolerance was not reached."""
        if self.result_.status not in ("optimal", "converged"):
            warnings.warn(
                f"{type(self).__name__}: ended as {self.result_.status!r} after {self.n_iter_} "
                f"iterations, tol = {self.tol:g} not proved; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    # -- new rows ----------------------------------------------------------------------------------
    def _aligned(
        self, X: Any, y: Any = None, weights: Any = None, offset: Any = None
    ) -> tuple[list[PartyTable], Any, Any, Any]:
        """The parties' columns for new rows, in the order of the fit; labels joined with them."""
        check_is_fitted(self, "coef_")
        if y is not None and not hasattr(y, "iloc"):
            y = np.asarray(y)
        names = [party for party, _, _ in self._tables]
        raw = bool(self.preparations_)
        if self._single:
            X = one_table(X, self.key)
            validate_data(self, X, skip_check_array=True, reset=False)
            named = None if self.parties is None else names
            tables = dealt(X, named, self._dealt, raw=raw)
        elif is_one_table(X):
            raise InputError(
                f"vfl: the model was fitted with a table of each party ({str(names)[1:-1]}) but X "
                "is one table; give those of the parties"
            )
        else:
            tables = read_tables(X, key=self.key, raw=raw)
        tables = self._matched(tables)
        most = max(table.rows for table in tables)
        tables, y, weights, offset = align(tables, y, weights, self.join, offset)
        if y is None and tables[0].rows < most:
            warnings.warn(
                f"vfl: {tables[0].rows} of {most} rows are at all parties; predictions are "
                "of these, by their keys",
                AssumptionWarning,
                stacklevel=4,
            )
        if raw:
            tables = [applied(self.preparations_[table.party], table) for table in tables]
        return tables, y, weights, offset

    def _matched(self, tables: list[PartyTable]) -> list[PartyTable]:
        """Each fitted party's table, its columns in the order of the fit."""
        known = {t.party: t for t in tables}
        out = []
        for party, columns, named in self._tables:
            if party not in known:
                hint = nearest(party, known)
                raise InputError(f"vfl: party {party!r} is missing from X; {hint}")
            out.append(_columns_of(known[party], columns, named))
        extra = known.keys() - {party for party, _, _ in self._tables}
        if extra:
            raise InputError(
                f"vfl: party {min(extra)!r} was not there when the model was fitted; leave it out"
            )
        return out

    def _keyed(self, tables: list[PartyTable], values: Array, columns: Any = None) -> Any:
        """Values of rows with their keys, where the parties' own tables have any."""
        keys = tables[0].keys
        if keys is None or self._single:
            return values
        import pandas as pd

        if values.ndim == 1:
            return pd.Series(values, index=keys)
        return pd.DataFrame(values, index=keys, columns=columns)

    def _summed(self, tables: list[PartyTable]) -> Array:
        coef = np.atleast_2d(self.coef_)
        total = np.zeros((tables[0].rows, len(coef)))
        for table, places in zip(tables, self._places, strict=True):
            total += np.asarray(table.X @ coef[:, places].T)
        return np.asarray(total + np.atleast_1d(self.intercept_))

    def _infers(
        self, family: Distribution, data: VerticalData, problem: VflProblem, penalty: float
    ) -> None:
        """Keep what standard errors rest on."""
        losses: Any = self._model(data, family.name, 0.0)
        self._fitted = Fitted(
            problem,
            family,
            data.y,
            data.weights,
            data.offset,
            penalty,
            problem.prediction_scale / losses.prediction_scale,
            self.fit_intercept,
        )

    def summary(
        self, *, robust: bool = False, information: str = "observed", level: float = 0.95
    ) -> Inference:
        """Standard errors, intervals and tests; of ridge, of two classes and of deviances.

        ``robust``: by the sandwich, for rows whose variance is not that of the model.
        """
        check_is_fitted(self, "coef_")
        fitted: Fitted | None = getattr(self, "_fitted", None)
        if fitted is None:
            raise InputError(
                f"{type(self).__name__}: has no standard errors (kinks, or several classes); take "
                "VerticalRidge, VerticalLogisticRegression with two classes, VerticalPoisson, ..."
            )
        coef = np.ravel(self.coef_)
        intercept = float(np.ravel(self.intercept_)[0])
        return Inference(
            fitted, coef, intercept, robust=robust, information=information, level=level
        )

    @property
    def inference_(self) -> Inference:
        """The :meth:`summary` as it comes."""
        return self.summary()

    @property
    def party_coef_(self) -> dict[str, Any]:
        """Each party's part of ``coef_``: a mapping of column to weight, or an array."""
        check_is_fitted(self, "coef_")
        coef = np.asarray(self.coef_)
        each = zip(self._tables, self._columns, self._places, strict=True)
        return {
            party: dict(zip(columns, coef[..., places].T.tolist(), strict=True))
            if named
            else coef[..., places]
            for (party, _, _), (columns, named), places in each
        }

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _fits(start: Any, problem: VflProblem) -> bool:
    """Whether a solution of an earlier fit is one of this problem's size."""
    if start is None or len(start.x) != problem.n or len(start.z) != problem.q:
        return False
    return all(len(x) == problem.d[i] for i, x in enumerate(start.x))


def _columns_of(table: PartyTable, columns: tuple[Any, ...], named: bool) -> PartyTable:
    """The columns that were fitted, in that order."""
    where = f"vfl: party {table.party!r}"
    if not (named and table.named):
        if len(table.columns) != len(columns):
            raise InputError(
                f"{where}: has {len(table.columns)} columns but was fitted with {len(columns)}"
            )
        return table
    place = {name: j for j, name in enumerate(table.columns)}
    for name in columns:
        if name not in place:
            hint = nearest(str(name), map(str, table.columns))
            raise InputError(f"{where}, column {shown(name)}: is missing; {hint}")
    extra = [name for name in table.columns if name not in set(columns)]
    if extra:
        raise InputError(
            f"{where}, column {shown(extra[0])}: was not there when the model was fitted; drop it"
        )
    order: NDArray[np.int64] = np.array([place[name] for name in columns])
    return table.with_columns(order, columns)


def score_inputs(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """(predictions, labels, weights) in one order of rows."""
    tables, y, sample_weight, _ = estimator._aligned(X, y, sample_weight)
    return estimator._labelled(estimator._summed(tables)), y, sample_weight
