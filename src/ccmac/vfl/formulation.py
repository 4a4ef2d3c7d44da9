"""Vertical federated learning as a CC-MAC problem: tables and labels in, a problem out.

Parties own column blocks X_i of one N x d table and their weights w_i; the shared variable is the
prediction. With shares alpha_i of sum one,

    sum_i (X_i w_i - alpha_i p) / sqrt(N) = 0

(Equation eq:main-vfl-channels; the objective is that of :mod:`ccmac.vfl.model`). The loss is split
evenly over the parties, or kept by one (``label_owner``). Each party centres and scales its own
columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import FLAG, Array, is_sparse, of_kind, whole
from ccmac.texts import nearest, shown
from ccmac.vertical import Vertical, VflProblem
from ccmac.vfl.alignment import align
from ccmac.vfl.labels import DEVIANCES, encoded, known, numbers
from ccmac.vfl.model import VerticalModel
from ccmac.vfl.shares import shares_of
from ccmac.vfl.tables import PartyTable, columns_of, is_one_table, one_table, read_tables
from ccmac.vfl.units import column_moments, constant_columns, entered, may_be_centred, power_of_two

__all__ = ["VerticalData", "VflProblem", "formulated", "problem"]


def problem(
    X: Any,
    y: Any,
    n_agents: int | None = None,
    loss: str = "squared",
    regularization: float = 1e-2,
    partition_seed: int = 0,
    shares: Any = None,
    label_owner: int | str | None = None,
    *,
    shared_regularization: float = 0.0,
    l1: float = 0.0,
    delta: float = 1.0,
    power: float = 1.5,
    quantile: float = 0.5,
    parties: Any = None,
    key: str | None = None,
    join: str = "strict",
    intercept: bool = False,
    standardize: bool = False,
    sample_weight: Any = None,
    offset: Any = None,
    alpha: Any = None,
) -> VflProblem:
    """The problem of learning y from the parties' columns.

    X is a mapping or list of the parties' tables, or one table: its columns are dealt out at
    random to ``n_agents``, or as ``parties=`` says (a number of contiguous parts, lists of columns,
    or a mapping of such). Rows are joined by the tables' index, or by the column ``key=``, with
    ``join="strict"`` (the same keys everywhere, in any order) or ``"inner"``.

    ``shares``: None (equal), numbers that sum to one, ``("cross_factor", chi)`` (the zero-sum
    direction that realizes chi when N > d), or ``"feature-norm"`` (in proportion to ||X_i||_F).
    ``regularization`` is lambda, ``shared_regularization`` rho, ``l1`` adds l1 ||w||_1, ``delta``
    is Huber's threshold. ``label_owner`` (a party's name or number) keeps the loss to itself.
    It brings the labels but cannot hide them: all parties know z and the coupled multipliers, which
    show every label of a squared loss and the sign of those of a logistic one.
    Parameters
    ----------
    X : mapping, list or table
        The parties' tables, or one table whose columns are dealt out.
    y : array_like
        Labels, one a row.
    n_agents : int, optional
        Deal the columns of one table out at random to so many.
    loss : str
        "squared", "huber", "absolute", "quantile", "logistic", "hinge", "multinomial", "poisson",
        "gamma", "tweedie" or "inverse-gaussian".
    regularization : float
        lambda of (1/N) sum loss + (lambda/2) ||w||^2.
    partition_seed : int
        Of the random partition.
    shares : None, array_like, ("cross_factor", chi) or "feature-norm"
        Shares of the predictions; equal by default.
    label_owner : int or str, optional
        The party that brings the labels and keeps the loss.
    shared_regularization : float
        rho, a ridge on the predictions.
    l1 : float
        Factor of ||w||_1.
    delta : float
        Huber's threshold, in the units of y.
    power : float
        Of the variance, for the loss "tweedie".
    quantile : float
        For the loss "quantile".
    parties : int, list or mapping, optional
        Who has which columns of one table.
    key : str, optional
        The column by which rows are joined.
    join : {"strict", "inner"}
        The same keys everywhere, or those that all have.
    intercept : bool
        Add an unpenalized one.
    standardize : bool
        Divide every column by its standard deviation.
    sample_weight : array_like, optional
        Weights of the rows.
    offset : array_like, optional
        Added to the scores of losses with a logarithmic link.
    alpha : optional
        The old name of ``shares``.

    Returns
    -------
    VflProblem

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> result = ccmac.solve(problem, "ring")
    >>> result.status, problem.weights(result).shape
    ('optimal', (6,))
    """
    for name, flag in (("intercept", intercept), ("standardize", standardize)):
        of_kind(f"vfl.problem, {name}", flag, FLAG, "True or False")
    if alpha is not None:
        if shares is not None:
            raise InputError("vfl: alpha is the old name of shares; give shares alone")
        shares = alpha
    data = VerticalData.read(
        X,
        y,
        loss,
        _parties(X, n_agents, partition_seed, parties, key),
        weights=sample_weight,
        key=key,
        join=join,
        offset=offset,
    )
    model = VerticalModel(
        loss,
        data.rows,
        regularization,
        l1,
        shared_regularization,
        delta,
        data.outputs,
        power=power,
        quantile=quantile,
    )
    return formulated(
        data, model, shares, label_owner, intercept=intercept, standardize=standardize
    )


def _parties(X: Any, n_agents: int | None, seed: int, parties: Any, key: str | None) -> Any:
    """What :func:`read_tables` deals columns out by; ``n_agents`` deals them out at random."""
    if n_agents is None:
        return parties
    whole("vfl: n_agents", n_agents, 1)
    if parties is not None:
        raise InputError("vfl: n_agents and parties both deal out columns; give one")
    if not is_one_table(X):
        if n_agents == len(X):
            return None
        raise InputError(
            f"vfl: n_agents = {shown(n_agents)} but X holds the tables of {len(X)} parties; "
            "leave n_agents out"
        )
    columns, _ = columns_of("vfl", one_table(X, key))
    if n_agents > len(columns):
        raise InputError(f"vfl: {n_agents} agents for {len(columns)} columns; give each one")
    chance = np.random.default_rng(whole("vfl: partition_seed", seed)).permutation(len(columns))
    return [[columns[j] for j in part] for part in np.array_split(chance, n_agents)]


@dataclass
class VerticalData:
    """Aligned tables with encoded labels; ``places`` are the columns' places in the whole table."""

    tables: Sequence[PartyTable]
    places: Sequence[NDArray[np.int64]]
    y: Array
    classes: tuple[Any, ...]
    weights: Array | None
    outputs: int
    offset: Array | None = None
    given: Sequence[PartyTable] = ()  # before preprocessing

    def __post_init__(self) -> None:
        self.given = self.given or self.tables

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        loss: str,
        parties: Any = None,
        *,
        weights: Any = None,
        key: str | None = None,
        join: str = "strict",
        offset: Any = None,
        prepare: Callable[[PartyTable], PartyTable] | None = None,
    ) -> VerticalData:
        """Everything checked; complaints name party and column. ``prepare`` makes numbers."""
        known(loss)
        if y is None:
            raise InputError("vfl: y is None; requires y to be passed, one label for each row")
        tables = read_tables(X, parties, key, raw=prepare is not None)
        tables, y, weights, offset = align(tables, y, weights, join, offset)
        targets, classes = encoded(loss, y, tables[0].keys)
        s = None if weights is None else _row_weights(weights, len(targets))
        outputs = len(classes) if loss == "multinomial" else 1
        o = None if offset is None else numbers("offset", offset)
        if o is not None and o.shape != targets.shape:
            raise InputError(f"vfl: offset has shape {o.shape}; give {len(targets)} numbers")
        given = tables
        if prepare is not None:
            tables = [prepare(table) for table in tables]
        places = places_of(X, tables, key) if prepare is None else _side_by_side(tables)
        data = cls(tables, places, targets, classes, s, outputs, o, given)
        # Rows that do not count are not there.
        return data if s is None or s.all() else data.selected(np.flatnonzero(s))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def total(self) -> float:
        """W, the sum of the rows' weights."""
        return float(self.rows if self.weights is None else self.weights.sum())

    def selected(self, rows: NDArray[np.int64]) -> VerticalData:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        offset = None if self.offset is None else self.offset[rows]
        tables = [t.taken(rows) for t in self.tables]
        given = () if self.given[0] is self.tables[0] else [t.taken(rows) for t in self.given]
        known = (self.y[rows], self.classes, weights, self.outputs, offset, given)
        return VerticalData(tables, self.places, *known)

    @property
    def columns(self) -> tuple[Any, ...]:
        """Names in the order of the whole table."""
        names: list[Any] = [None] * sum(len(p) for p in self.places)
        for table, places in zip(self.tables, self.places, strict=True):
            for name, j in zip(table.columns, places, strict=True):
                names[j] = name
        return tuple(names)


def places_of(
    X: Any, tables: Sequence[PartyTable], key: str | None = None
) -> list[NDArray[np.int64]]:
    """Where the columns of each table are in the whole table."""
    if is_one_table(X):
        place = {name: j for j, name in enumerate(columns_of("vfl", one_table(X, key))[0])}
        return [np.array([place[name] for name in t.columns]) for t in tables]
    return _side_by_side(tables)


def _side_by_side(tables: Sequence[PartyTable]) -> list[NDArray[np.int64]]:
    ends = np.cumsum([0, *(len(t.columns) for t in tables)])
    return [np.arange(a, b) for a, b in pairwise(ends)]


def _row_weights(weights: Any, rows: int) -> Array:
    s = numbers(
        "sample_weight", np.broadcast_to(weights, rows) if np.ndim(weights) == 0 else weights
    )
    if s.shape != (rows,):
        raise InputError(f"vfl: sample_weight has shape {s.shape}; give {rows} numbers")
    if (s < 0).any() or not s.any():
        raise InputError(
            "vfl: sample_weight: give numbers that are not negative; not all weights may be zero"
        )
    return s


def formulated(
    data: VerticalData,
    model: VerticalModel,
    shares: Any,
    label_owner: int | str | None,
    *,
    intercept: bool,
    standardize: bool,
    own_units: bool = False,
) -> VflProblem:
    """The problem of ``model`` on ``data``.

    ``own_units``: columns and labels are divided by powers of two near their deviations, so that a
    tolerance means the same whatever they are measured in; weights come back in the table's units.
    """
    blocks = [t.X for t in data.tables]
    n = len(data.tables)
    centred = intercept and model.loss == "squared" and all(map(may_be_centred, blocks))
    model = replace(model, fits_intercept=intercept and not centred)
    if own_units:
        model = model.with_column(len(data.columns))
    y = data.y
    target = None
    if centred:
        target = float(np.average(y, weights=data.weights))
        y = y - target
    # Columns that are stored in full are centred at no cost: rounding counts from their deviations.
    centre = centred or (intercept and not any(map(is_sparse, blocks)))
    moments = [
        column_moments(X, data.weights, centre=centre, scale=standardize or own_units)
        for X in blocks
    ]
    if standardize:
        _tell_constant(data.tables)
    unit = 1.0
    if own_units:
        unit = (
            1.0
            if data.classes or model.loss in DEVIANCES
            else power_of_two(y - y.mean() if intercept else y)
        )
        width = 1.0 if standardize else power_of_two(np.concatenate([d for _, d in moments]))
        if not standardize:
            moments = [(mean, np.full_like(d, width)) for mean, d in moments]
        model = model.in_units(width, unit)
        y = y / unit
    owner = _owner(label_owner, [t.party for t in data.tables])
    entering = [entered(X, *m) for X, m in zip(blocks, moments, strict=True)]
    alpha = shares_of(shares, entering)
    holders = range(n) if owner is None else (owner,)
    loss = model.shared_loss(y, 1.0 / len(holders), data.weights, data.offset)
    bearer = holders[0] if model.column else None
    agents = [
        model.agent(X, float(alpha[i]), loss if i in holders else None, ones=i == bearer)
        for i, X in enumerate(entering)
    ]
    mean, scale = (_whole([m[k] for m in moments], data.places) for k in (0, 1))
    scale = None if scale is None else scale / unit
    vertical = Vertical(
        tuple(data.places),
        alpha,
        model.prediction_scale * unit,
        tuple(t.party for t in data.tables),
        data.columns,
        mean,
        scale,
        target,
        data.outputs,
        data.classes,
        bearer,
    )
    return VflProblem(agents).with_vertical(vertical)


def _tell_constant(tables: Sequence[PartyTable]) -> None:
    """A column that is to be divided by its deviation, and has none, may be a mistake."""
    for table in tables:
        for j in constant_columns(table.X)[:1]:
            warnings.warn(
                f"vfl: party {shown(table.party)}, column {shown(table.columns[j])}: is constant "
                "and cannot be standardized; drop it",
                stacklevel=5,
            )


def _whole(parts: Sequence[Array | None], places: Sequence[NDArray[np.int64]]) -> Array | None:
    """The parties' entries in the order of the whole table."""
    if any(part is None for part in parts):
        return None
    out = np.zeros(sum(map(len, places)))
    for part, where in zip(parts, places, strict=True):
        out[where] = part
    return out


def _owner(asked: int | str | None, parties: Sequence[str]) -> int | None:
    if asked is None:
        return None
    if isinstance(asked, str):
        if asked not in parties:
            raise InputError(f"vfl: label_owner {shown(asked)}: {nearest(asked, parties)}")
        return parties.index(asked)
    if whole("vfl: label_owner", asked) >= len(parties):
        raise InputError(f"vfl: label_owner {asked} is not an agent 0..{len(parties) - 1}")
    return int(asked)
