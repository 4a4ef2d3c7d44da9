"""Vertical learning between owners: each process has one party's rows and nothing else.

What travels, over a runtime whose process owns one agent: salted hashes of the keys (HMAC-SHA256,
96 bits; whoever knows the salt can try every key there may be) or, with ``alignment = "private"``,
their private set intersection; the labels unless their owner keeps them; and then what the method
sends, sums over the parties of X_i w_i among it. No party's columns or weights do.

A prediction is the sum of the parties' scores X_i w_i + offset_i, one averaging for all new rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ccmac.api import solve
from ccmac.errors import AgreedError, InputError
from ccmac.inputs import FLAG, Array, nonnegative, number, of_kind, positive, whole
from ccmac.methods.registry import parse
from ccmac.objectives import Intercept
from ccmac.problem import Agent, Problem
from ccmac.results import Result
from ccmac.runtime import Runtime
from ccmac.texts import nearest, shown
from ccmac.vfl.alignment import JOINS, align, check_unique
from ccmac.vfl.intersection import digests, floats, intersected
from ccmac.vfl.labels import encoded, is_missing
from ccmac.vfl.model import VerticalModel
from ccmac.vfl.preparation import Column, Preparation, applied, fitted
from ccmac.vfl.selection import folds, judged
from ccmac.vfl.tables import PartyTable, is_one_table, read_tables
from ccmac.vfl.units import column_moments, entered, may_be_centred

ALIGNMENTS = ("hashes", "private")
WORDS = 3  # of 32 bits of a hash, which name a key


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The objective of :mod:`ccmac.vfl.model` and how it is solved; ``[model]`` of me.toml."""

    loss: str = "squared"
    regularization: float = 1e-2
    l1: float = 0.0
    delta: float = 1.0
    quantile: float = 0.5
    intercept: bool = True
    standardize: bool = False
    share_labels: bool = True
    preprocess: str = ""
    join: str = "strict"
    salt: str = ""
    alignment: str = "hashes"
    grid: tuple[float, ...] = ()
    folds: int = 5
    network: str = "complete"
    averaging: str = "auto"
    method: str = "auto"
    reveal: str = "sketch"
    tol: float = 1e-6
    max_iterations: int | None = None


class Agreement(Terms, frozen=True, kw_only=True):
    """What all parties have alike: their names, in order, and the terms."""

    parties: tuple[str, ...]

    def model(self, rows: int, **more: Any) -> VerticalModel:
        """The objective of so many rows."""
        more |= {"delta": self.delta, "quantile": self.quantile}
        return VerticalModel(self.loss, rows, self.regularization, self.l1, **more)

    def digest(self) -> Array:
        """Numbers that differ where agreements do."""
        return np.asarray(floats(digests([repr(self)], ""))[0])


@dataclass(frozen=True)
class PartyModel:
    """One party's part: weights of its columns and what it adds (the intercept at the labels).

    ``learned`` says how columns become numbers, ``tried`` how good each strength of a grid is.
    """

    party: str
    columns: tuple[Any, ...]
    coef: Array  # a row for each column, a column for each score
    offset: Array
    classes: tuple[Any, ...] = ()
    learned: tuple[Column, ...] = ()
    tried: tuple[dict[str, float], ...] = ()

    @property
    def taken(self) -> list[Any]:
        """The columns of its table."""
        return [column.name for column in self.learned] or list(self.columns)

    def scores(self, table: PartyTable) -> Array:
        """X_i w_i + offset_i of every row."""
        if self.learned:
            table = applied(Preparation(self.party, self.learned), table)
        return np.asarray(table.X @ self.coef + self.offset)


def party(
    X: Any,
    y: Any = None,
    *,
    parties: int,
    loss: str = "squared",
    regularization: float = 1e-2,
    share: float | None = None,
    loss_share: float | None = None,
    l1: float = 0.0,
    delta: float = 1.0,
    intercept: bool = False,
) -> Agent:
    """One party's agent, for runs in which nobody holds everything.

    Rows are in an order that all agreed on. ``y`` is given where the party knows the labels; its
    part of the loss is 1/``parties`` (all know them), or ``loss_share`` (1 where it alone does).
    With an intercept squared losses have centred columns, the others fit it.

    Parameters
    ----------
    X : array_like or sparse matrix
        The party's columns.
    y : array_like, optional
        Labels, where the party knows them.
    parties : int
        How many there are.
    loss : str
        "squared", "huber", "absolute", "logistic", "hinge" or "multinomial".
    regularization : float
        lambda of (1/N) sum loss + (lambda/2) ||w||^2.
    share : float, optional
        The party's share of the predictions; 1/parties by default.
    loss_share : float, optional
        Its share of the loss; 1/parties by default.
    l1 : float
        Factor of ||w||_1.
    delta : float
        Huber's threshold, in the units of y.
    intercept : bool
        Whether a constant is fitted.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 4))
    >>> parts = [ccmac.vfl.party(X[:, k : k + 2], X[:, 0], parties=2) for k in (0, 2)]
    >>> ccmac.solve(ccmac.Problem(parts)).status
    'optimal'
    """
    if not is_one_table(X):
        raise InputError("vfl.party: X is one party's table; give each party's to its own call")
    of_kind("vfl.party, intercept", intercept, FLAG, "True or False")
    even = 1.0 / positive("vfl.party, parties", whole("vfl.party, parties", parties, 1))
    share, loss_share = (
        even if asked is None else number(f"vfl.party, {name}", asked)
        for name, asked in (("share", share), ("loss_share", loss_share))
    )
    [table], y, _, _ = align(read_tables(X), y)
    targets = classes = None
    if y is not None:
        targets, classes = encoded(loss, y, table.keys)
    outputs = len(classes) if classes and loss == "multinomial" else 1
    centred = intercept and loss == "squared"
    model = VerticalModel(
        loss, table.rows, regularization, l1, 0.0, delta, outputs, intercept and not centred
    )
    moments = column_moments(table.X, None, centre=centred, scale=False)
    part = None
    if targets is not None:
        if centred:
            targets = targets - targets.mean()
        part = model.shared_loss(targets, loss_share)
    return model.agent(entered(table.X, *moments), share, part)


def check_keys(agreement: Agreement, table: PartyTable) -> None:
    """Whether every row has a key of its own."""
    _own_keys(agreement, table.party, table.keys)


def check_own(agreement: Agreement, table: PartyTable, y: Any = None) -> None:
    """Whatever a party can find wrong by itself, before anybody is called."""
    _own_keys(agreement, table.party, table.keys)
    agreement.model(table.rows)
    if y is not None:
        encoded(agreement.loss, y, table.keys)
    table, _ = _prepared(agreement, table)
    column_moments(table.X, None, centre=False, scale=agreement.standardize)
    parse(agreement.method)
    positive("vfl: tol", agreement.tol)
    for strength in agreement.grid:
        nonnegative("vfl: grid", strength)


def _prepared(agreement: Agreement, table: PartyTable) -> tuple[PartyTable, tuple[Column, ...]]:
    """The table in numbers, and what was learned for it."""
    if not agreement.preprocess:
        return table, ()
    learned = fitted(agreement.preprocess, table)
    return applied(learned, table), learned.columns


def train(
    agreement: Agreement,
    table: PartyTable,
    y: Any,
    runtime: Runtime,
    checkpoint: Mapping[str, Any] | None = None,
) -> tuple[PartyModel, PartyTable, Result]:
    """Fit with the others; (this party's model, its rows as they were joined, the result).

    ``checkpoint`` as in :func:`ccmac.solve`: a folder of this party's own.
    """
    _place(agreement, table.party, runtime)
    _compare(agreement, runtime)
    order = joined_rows(agreement, table.keys, runtime)
    table = table.taken(order)
    y = None if y is None else np.asarray(y)[order]
    labels = _Labels.announced(agreement, y, table.keys, runtime)
    tried = [_tried(agreement, strength, table, labels, runtime) for strength in agreement.grid]
    if tried:
        strength = agreement.grid[_best(tried, runtime)]
        agreement = msgspec.structs.replace(agreement, regularization=strength)
    model, result = _fitted(agreement, table, labels, runtime, checkpoint)
    return replace(model, tried=tuple(tried)), table, result


def _fitted(
    agreement: Agreement,
    table: PartyTable,
    labels: _Labels,
    runtime: Runtime,
    checkpoint: Mapping[str, Any] | None = None,
) -> tuple[PartyModel, Result]:
    """The model of rows that are joined."""
    me = runtime.owned[0]
    table, learned = _prepared(agreement, table)
    facts = _gathered(runtime, [float(may_be_centred(table.X)), float(table.X.shape[1])])
    centre = agreement.intercept and bool(facts[:, 0].all())
    centred = centre and agreement.loss == "squared"
    fits = agreement.intercept and not centred
    model = agreement.model(table.rows, outputs=labels.outputs, fits_intercept=fits)
    mean, scale = column_moments(table.X, None, centre=centre, scale=agreement.standardize)
    part = labels.loss(model, centred, runtime.n)
    ones = model.column and labels.mine
    agent = model.agent(entered(table.X, mean, scale), 1.0 / runtime.n, part, ones=ones)
    size = table.rows * labels.outputs
    problem = Problem({me: agent}, n=runtime.n, q=size, m=size, present=("A", "B"))
    chosen = agreement.method in ("auto", "cross-newton")
    result = solve(
        problem,
        runtime.network,
        parse(agreement.method, {"reveal": agreement.reveal} if chosen else {}),
        agreement.tol,
        runtime=runtime,
        max_iterations=agreement.max_iterations,
        checkpoint=checkpoint,
    )
    size = table.X.shape[1] * labels.outputs
    coef = np.reshape(result.x[0][:size], (-1, labels.outputs))
    coef = coef if scale is None else coef / scale[:, None]
    offset = np.zeros(labels.outputs) if mean is None else -mean @ coef
    if labels.mine:
        offset = offset + labels.intercept(model, part, centred, result)
    return PartyModel(table.party, table.columns, coef, offset, labels.classes, learned), result


def _tried(
    agreement: Agreement, strength: float, table: PartyTable, labels: _Labels, runtime: Runtime
) -> dict[str, float]:
    """How good a strength of the penalty is on rows left out, at those who know the labels.

    Everybody learns the scores of these rows, the same way as of new ones.
    """
    agreement = msgspec.structs.replace(agreement, regularization=strength)
    total = np.zeros((table.rows, labels.outputs))
    for fit, left in folds(table.rows, agreement.folds):
        model, _ = _fitted(agreement, table.taken(fit), labels.of(fit), runtime)
        own = model.scores(table.taken(left))
        total[left] = runtime.average(own.reshape(1, -1))[0].reshape(own.shape) * runtime.n
    found = (
        {}
        if labels.y is None
        else judged(agreement.loss, labels.y, total, quantile=agreement.quantile)
    )
    return {"regularization": strength} | found


def _best(tried: Sequence[dict[str, float]], runtime: Runtime) -> int:
    """The place of the best in its first measure; who knows the labels says it to all."""
    mine = -1
    if len(tried[0]) > 1:
        measure = list(tried[0])[1]
        mine = int(np.argmin([row[measure] for row in tried]))
    return int(_gathered(runtime, [float(mine)]).max())


def predict(
    agreement: Agreement, model: PartyModel, table: PartyTable, runtime: Runtime
) -> tuple[PartyTable, Array]:
    """(this party's new rows as they were joined, the scores of all parties together)."""
    _place(agreement, table.party, runtime)
    _compare(agreement, runtime)
    table = table.taken(joined_rows(agreement, table.keys, runtime))
    own = model.scores(table)
    total = runtime.average(own.reshape(1, -1))[0] * runtime.n
    return table, np.asarray(total.reshape(own.shape))


def joined_rows(
    agreement: Agreement, keys: NDArray[Any] | None, runtime: Runtime
) -> NDArray[np.int64]:
    """This party's rows that all have, in the order of their hashes: one row of hashes each."""
    names = agreement.parties
    texts = _own_keys(agreement, names[runtime.owned[0]], keys)
    if agreement.alignment == "private":
        return _intersected(agreement, texts, runtime)
    names_of_keys = floats(digests(texts, agreement.salt))[:, :WORDS]
    own = {tuple(name): row for row, name in enumerate(names_of_keys.tolist())}
    counts = _gathered(runtime, [float(len(own))])[:, 0].astype(int)
    line = np.full(WORDS * int(counts.max()), -1.0)
    line[: WORDS * len(own)] = names_of_keys.ravel()
    everybody = runtime.gather(line[None, :])
    held = [
        set(map(tuple, row[: WORDS * count].reshape(-1, WORDS).tolist()))
        for row, count in zip(everybody, counts, strict=True)
    ]
    common = set.intersection(*held)
    if not common:
        raise AgreedError("vfl: no key is at all parties; check the key columns and the salt")
    if agreement.join == "strict":
        every = set.union(*held)
        for who, keys_there in zip(names, held, strict=True):
            if len(keys_there) < len(every):
                raise AgreedError(
                    f"vfl: party {shown(who)} lacks {len(every - keys_there)} of the keys that "
                    'others have; add the rows, or keep the common ones with join = "inner"'
                )
    return np.array([own[name] for name in sorted(common)], dtype=np.int64)


def _intersected(
    agreement: Agreement, texts: list[str | None], runtime: Runtime
) -> NDArray[np.int64]:
    """The same by private set intersection."""
    rows, counts = intersected(texts, agreement.salt, runtime)
    if not len(rows):
        raise AgreedError("vfl: no key is at all parties; check the key columns and the salt")
    if agreement.join == "strict" and (counts > len(rows)).any():
        who = int(np.argmax(counts))
        raise AgreedError(
            f"vfl: {len(rows)} keys are at all parties, but {shown(agreement.parties[who])} has "
            f'{counts[who]}; make keys alike, or keep the common ones with join = "inner"'
        )
    return rows


def _own_keys(agreement: Agreement, party: str, keys: NDArray[Any] | None) -> list[str | None]:
    """The keys as texts, all of them there and different."""
    if agreement.join not in JOINS:
        raise InputError(f"vfl: join = {shown(agreement.join)}; take 'strict' or 'inner'")
    if agreement.alignment not in ALIGNMENTS:
        hint = nearest(agreement.alignment, ALIGNMENTS)
        raise InputError(f"vfl: alignment {shown(agreement.alignment)} is unknown; {hint}")
    if keys is None:
        raise InputError("vfl: the table has no keys; name the key column")
    texts = [None if is_missing(key) or key == "" else str(key) for key in keys.tolist()]
    check_unique(f"party {shown(party)}", np.array(texts, dtype=object))
    return texts


def _gathered(runtime: Runtime, numbers: Sequence[float]) -> Array:
    """Every party's numbers, a row each."""
    return runtime.gather(np.array([numbers], dtype=np.float64))


def _place(agreement: Agreement, name: str, runtime: Runtime) -> int:
    """This party's number, which must be its agent's."""
    names = agreement.parties
    if runtime.n != len(names) or len(runtime.owned) != 1:
        raise InputError(
            f"vfl: {len(names)} parties need as many processes, one party each; "
            f"this one holds {len(runtime.owned)} of {runtime.n}"
        )
    me = runtime.owned[0]
    if name not in names or names.index(name) != me:
        raise InputError(
            f"vfl: process {me} is party {shown(names[me])} by the list of parties but its file "
            f"says {shown(name)}; start the processes in the order of the list"
        )
    return me


def _compare(agreement: Agreement, runtime: Runtime) -> None:
    """All have the same agreement."""
    everybody = _gathered(runtime, agreement.digest().tolist())
    other = next((i for i, row in enumerate(everybody) if (row != everybody[0]).any()), None)
    if other is not None:
        names = agreement.parties
        raise AgreedError(
            f"vfl: party {shown(names[other])} has another [model] than {shown(names[0])}; "
            "make them alike"
        )


@dataclass(frozen=True)
class _Labels:
    """Labels as far as this party knows them; ``mine``: they are its own."""

    y: Array | None
    outputs: int
    mine: bool
    shared: bool
    classes: tuple[Any, ...]
    name: float | None = None

    @classmethod
    def announced(cls, agreement: Agreement, y: Any, keys: Any, runtime: Runtime) -> _Labels:
        """One party has them; the others learn them unless it keeps them."""
        targets, classes = (None, ()) if y is None else encoded(agreement.loss, y, keys)
        outputs = len(classes) if agreement.loss == "multinomial" else 1
        known = _gathered(runtime, [float(targets is not None), float(max(outputs, 1))])
        holders = np.flatnonzero(known[:, 0])
        if len(holders) != 1:
            who = ", ".join(agreement.parties[i] for i in holders) or "nobody"
            raise AgreedError(f"vfl: one party has the labels, but {who} named a label column")
        holder = int(holders[0])
        outputs = int(known[holder, 1])
        if agreement.share_labels:
            line = np.zeros(len(keys)) if targets is None else targets
            line = np.append(line, float(secrets.randbits(48)))  # the name of the loss, for all
            *y, name = runtime.gather(line[None, :])[holder]
            return cls(np.array(y), outputs, targets is not None, True, classes, float(name))
        return cls(targets, outputs, targets is not None, False, classes)

    def of(self, rows: NDArray[np.int64]) -> _Labels:
        """Those of some rows."""
        return replace(self, y=None if self.y is None else self.y[rows])

    def loss(self, model: VerticalModel, centred: bool, n: int) -> Any:
        """This party's part of the loss."""
        if self.y is None:
            return None
        y = self.y - self.y.mean() if centred else self.y
        loss = model.shared_loss(y, 1.0 / n if self.shared else 1.0)
        loss.public_name = self.name
        return loss

    def intercept(
        self, model: VerticalModel, part: Any, centred: bool, result: Result
    ) -> Array | float:
        """What the owner of the labels adds to the scores."""
        if centred:
            assert self.y is not None
            return float(self.y.mean())
        if isinstance(part, Intercept):
            return model.prediction_scale * part.offset(np.asarray(result.z))
        if model.column:
            return model.prediction_scale * float(result.x[0][-1])
        return 0.0
