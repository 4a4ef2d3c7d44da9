"""Generated stand-ins for the known sets, for machines that have neither the files nor a network.

A look-alike has the rows and features of the original, the same number of nonzeros within 5 %, the
same number of positive labels where that is known, and a Gram spectrum that decays alike. It is
named ``<set>-like`` so that no result on it can pass for one on the original.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ccmac.inputs import Array
from ccmac.lab.data.categorical import CENSUS, MUSHROOMS, one_hot
from ccmac.lab.data.registry import LIKE, Dataset, resolve
from ccmac.lab.data.words import keyword_indicators, unit_documents


def generate(name: str, seed: int = 0) -> Dataset:
    """Return the look-alike of the set ``name`` (with or without ``-like``) for ``seed``.

    Equal names and seeds give equal arrays on every platform.
    """
    record = resolve(name)
    rng = np.random.default_rng(seed)
    if record.name == "mushrooms":
        X = one_hot(MUSHROOMS, record.rows, rng)
    elif record.name == "w8a":
        X = keyword_indicators(record.rows, record.features, rng)
    elif record.name == "rcv1_train.binary":
        X = unit_documents(record.rows, record.features, rng)
    else:
        X = one_hot(CENSUS, record.rows, rng)
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
