"""Generated stand-ins for the known sets, for machines that have neither the files nor a network.

A look-alike has the rows and features of the original, the same number of nonzeros within 5 %, the
same number of positive labels where that is known, and a Gram spectrum that decays alike. It is
named ``<set>-like`` so that no result on it can pass for one on the original.

**One-hot encoded tables** (census, mushrooms). Every attribute takes one of its categories, or none
where the original has gaps. The share of the categories falls off geometrically after the first, as
in the originals. Attributes depend on each other through a hidden type of the row: attribute g
reads its category off its own shares at

    u = o_g(t) + s_t v  with chance ``coherence``,   u = v  otherwise,

t the row's type, s_t the share of that type, v uniform, and [o_g(t), o_g(t) + s_t) the place of
type t when the types are laid side by side on [0, 1] in an order drawn for g. Both choices leave u
uniform, so the categories keep their shares whatever the dependence.

**Words**: few active columns per row, column frequencies with a heavy tail. The k-th most frequent
word has weight 1/(k + c) - 1/(d + c): a power law flattened at the head, and falling to zero at the
last of the d words. Rows have a hidden topic that favours some words, and lengths that vary as in
the originals. Columns are shuffled at the end.

Only uniform draws and operations that IEEE arithmetic fixes (+, *, /, square root, comparison) are
used, so that a seed gives the same arrays on every platform.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ccmac.inputs import Array
from ccmac.paper.data.registry import LIKE, Dataset, resolve


def generate(name: str, seed: int = 0) -> Dataset:
    """Return the look-alike of the set ``name`` (with or without ``-like``) for ``seed``.

    Equal names and seeds give equal arrays on every platform.
    """
    record = resolve(name)
    rng = np.random.default_rng(seed)
    if record.name == "mushrooms":
        X = one_hot(table("mushrooms"), record.rows, rng)
    elif record.name == "w8a":
        X = keyword_indicators(record.rows, record.features, rng)
    elif record.name == "rcv1_train.binary":
        X = unit_documents(record.rows, record.features, rng)
    else:
        X = one_hot(table("census"), record.rows, rng)
    positives = record.counts[1] if record.counts else record.rows // 2
    return Dataset(record.name + LIKE, X, _planted_labels(X, positives, rng), "generated")


def _planted_labels(X: csr_array[np.float64], positives: int, rng: np.random.Generator) -> Array:
    """Label +1 the rows with the largest noisy planted score; exactly ``positives`` of them.

    Whole-number weights and noise keep the scores, hence the labels, free of rounding.
    """
    rows, columns = X.shape
    weights = rng.integers(-8, 9, size=columns).astype(np.float64)
    support = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    score = support @ weights + rng.integers(-12, 13, size=rows)
    y = np.full(rows, -1.0)
    y[np.argsort(-score, kind="stable")[:positives]] = 1.0
    return y


@dataclass(frozen=True, slots=True)
class Attribute:
    """``size`` categories: the first has share ``lead``, the others fall by ``ratio`` each.

    The shares add up to ``present``; the rest of the rows lack the attribute.
    """

    size: int
    lead: float
    ratio: float = 1.0
    present: float = 1.0

    def cumulative(self) -> Array:
        """Return the upper ends of the categories' intervals in [0, present]."""
        if self.size == 1:
            return np.array([self.present])
        ends = np.cumsum(_geometric(self.size - 1, self.ratio))
        rest = self.present - self.lead
        return np.concatenate(([self.lead], self.lead + rest * (ends / ends[-1])))


def _geometric(size: int, ratio: float) -> list[float]:
    # By repeated products: the power function may round differently from platform to platform.
    terms = [1.0]
    for _ in range(size - 1):
        terms.append(terms[-1] * ratio)
    return terms


@dataclass(frozen=True, slots=True)
class Table:
    """Attributes, how often one follows the hidden type of its row, and the ratio of the share of
    one of the TYPES types to that of the type before it.
    """

    coherence: float
    type_ratio: float
    attributes: tuple[Attribute, ...]


TYPES = 24  # of rows


def table(name: str) -> Table:
    """``census`` or ``mushrooms``: (size, lead, ratio, present) of each attribute."""
    file = resources.files("ccmac.paper.data") / "tables.json"
    found = json.loads(file.read_text(encoding="utf-8"))[name]
    attributes = tuple(Attribute(*given) for given in found["attributes"])
    return Table(found["coherence"], found["type_ratio"], attributes)


def one_hot(table: Table, rows: int, rng: np.random.Generator) -> csr_array[np.float64]:
    """Draw ``rows`` rows of the one-hot matrix of ``table``.

    Uses uniform draws, additions, products and comparisons only, whose results IEEE arithmetic
    fixes: the matrix is the same on every platform.
    """
    ends = np.cumsum(_geometric(TYPES, table.type_ratio))
    share = np.diff(ends, prepend=0.0) / ends[-1]
    row_type = np.minimum(
        np.searchsorted(ends, rng.random(rows) * ends[-1], side="right"), TYPES - 1
    )
    columns = []
    present = []
    first = 0
    for attribute in table.attributes:
        order = rng.permutation(TYPES)
        offset = np.empty(TYPES)
        offset[order] = np.cumsum(share[order]) - share[order]
        v = rng.random(rows)
        tied = rng.random(rows) < table.coherence
        u = np.where(tied, offset[row_type] + share[row_type] * v, v)
        category = np.searchsorted(attribute.cumulative(), u, side="right")
        columns.append(first + category)
        present.append(category < attribute.size)
        first += attribute.size
    # Row after row, attributes in order: the column indices of a row then increase.
    kept = np.column_stack(present)
    indices = np.column_stack(columns)[kept].astype(np.int32)
    row_ends = np.concatenate(([0], np.cumsum(kept.sum(axis=1)))).astype(np.int32)
    return csr_array((np.ones(indices.size), indices, row_ends), shape=(rows, first))


# Relative row lengths of keyword data, one for each twentieth of the rows (mean 1).
_ACTIVITY = np.array(
    [0, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 21, 24, 27, 31, 35, 40, 47, 57, 80], dtype=np.float64
)
_ACTIVITY /= np.cumsum(_ACTIVITY)[-1] / _ACTIVITY.size

# Words drawn for a document, one for each tenth of the rows; repeated words merge.
_LENGTHS = np.array([20, 31, 39, 47, 56, 67, 80, 97, 126, 203])


def _weights(size: int, flat: float) -> Array:
    k = np.arange(size, dtype=np.float64)
    return np.asarray(1.0 / (k + flat) - 1.0 / (size + flat), dtype=np.float64)


def _shuffle_columns(
    matrix: csr_array[np.float64], rng: np.random.Generator
) -> csr_array[np.float64]:
    place = rng.permutation(matrix.shape[1]).astype(np.int32)
    ends = matrix.indptr.astype(np.int32)
    shuffled = csr_array((matrix.data, place[matrix.indices], ends), shape=matrix.shape)
    shuffled.sort_indices()
    return shuffled


def keyword_indicators(rows: int, columns: int, rng: np.random.Generator) -> csr_array[np.float64]:
    """Draw 0/1 rows: word j occurs in row i with chance min(0.95, a_i p_j b_{t(i), j}).

    a_i is the row's activity (mean 1), p_j the word's frequency (the first has 0.36), b is 2.5 on
    two of eight topics and 0.5 on the others (mean 1).
    """
    topics = 8
    favoured = 2
    boosts = np.where(np.arange(topics) < favoured, 2.5, 0.5)
    weights = _weights(columns, 15.0)
    frequency = 0.36 * (weights / weights[0])
    activity = _ACTIVITY[(rng.random(rows) * _ACTIVITY.size).astype(np.int64)]
    topic = (rng.random(rows) * topics).astype(np.int64)
    hits = []
    for p in frequency:
        boost = boosts[rng.permutation(topics)]
        chance = np.minimum(0.95, activity * p * boost[topic])
        hits.append(np.flatnonzero(rng.random(rows) < chance).astype(np.int32))
    indices = np.concatenate(hits)
    ends = np.concatenate(([0], np.cumsum([h.size for h in hits]))).astype(np.int32)
    by_column = csc_array((np.ones(indices.size), indices, ends), shape=(rows, columns))
    return _shuffle_columns(csr_array(by_column), rng)


def unit_documents(rows: int, columns: int, rng: np.random.Generator) -> csr_array[np.float64]:
    """Draw documents of unit Euclidean length with tf-idf like values.

    Half of the words of a document come from the common ranking. The other half come from its
    topic's ranking, which reorders words of like frequency and is steeper, so that a topic has
    words of its own. The value of a word is proportional to its count times a whole number that
    grows with the logarithm of its rank: squared lengths are exact integers.
    """
    k = np.arange(columns)
    octave = np.searchsorted(16 * 2 ** np.arange(12), k, side="right")
    band = np.searchsorted(512 * 2 ** np.arange(7), k, side="right")
    topics = 30
    rankings = [k] + [np.lexsort((rng.random(columns), band)) for _ in range(topics)]
    length = _LENGTHS[(rng.random(rows) * _LENGTHS.size).astype(np.int64)]
    topic_ends = np.cumsum(1.0 / np.arange(2, topics + 2))
    topic = 1 + _draw(topic_ends, rng.random(rows))
    row = np.repeat(np.arange(rows), length)
    topical = rng.random(row.size) < 0.5
    u = rng.random(row.size)
    common_rank = _draw(np.cumsum(_weights(columns, 55.0)), u)
    topic_rank = _draw(np.cumsum(_weights(columns, 6.0)), u)
    rank = np.where(topical, topic_rank, common_rank)
    word = np.stack(rankings)[np.where(topical, topic[row], 0), rank]
    counts = csr_array((np.ones(row.size), (row, word)), shape=(rows, columns))
    counts.sum_duplicates()
    counts.data *= (4 + octave)[counts.indices]
    squares = np.add.reduceat(counts.data * counts.data, counts.indptr[:-1])
    counts.data /= np.repeat(np.sqrt(squares), np.diff(counts.indptr))
    return _shuffle_columns(counts, rng)


def _draw(ends: Array, u: Array) -> NDArray[np.int64]:
    """Return the interval that each u in [0, 1) falls in, the intervals' ends scaled to 1."""
    found = np.searchsorted(ends, u * ends[-1], side="right")
    # The product may round up to the last end.
    return np.asarray(np.minimum(found, ends.size - 1), dtype=np.int64)
