"""Look-alikes of word data: few active columns per row, column frequencies with a heavy tail.

The k-th most frequent word has weight 1/(k + c) - 1/(d + c): a power law flattened at the head, and
falling to zero at the last of the d words. Rows have a hidden topic that favours some words, and
lengths that vary as in the originals. Columns are shuffled at the end.

Only uniform draws and operations that IEEE arithmetic fixes (+, *, /, square root, comparison) are
used, so that a seed gives the same matrix on every platform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ccmac.inputs import Array

# Relative row lengths of keyword data, one for each twentieth of the rows (mean 1).
_ACTIVITY = np.array(
    [0, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 21, 24, 27, 31, 35, 40, 47, 57, 80], dtype=np.float64
)
_ACTIVITY /= np.cumsum(_ACTIVITY)[-1] / _ACTIVITY.size

# Words drawn for a document, one for each tenth of the rows; repeated words merge.
_LENGTHS = np.array([20, 31, 39, 47, 56, 67, 80, 97, 126, 203])
_TOPICS = 30


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
    topics, favoured = 8, 2
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
    rankings = [k] + [np.lexsort((rng.random(columns), band)) for _ in range(_TOPICS)]
    length = _LENGTHS[(rng.random(rows) * _LENGTHS.size).astype(np.int64)]
    topic_ends = np.cumsum(1.0 / np.arange(2, _TOPICS + 2))
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
