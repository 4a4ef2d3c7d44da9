"""Arithmetic beyond doubles, for certificates: a longer format, and no rounding at all.

Products and sums in the longest floating-point format of the machine: on x86-64 that has 64 bits of
mantissa, so that what is computed here from doubles carries errors some 2,000 times smaller than
doubles do, and a residual of a double point is the residual and not its rounding. Where the format
is no longer than double, :data:`EPS_LONG` says so and bounds widen.

Ranks of matrices of doubles as they are: elimination modulo two primes. A double is an integer
times a power of two, and two has an inverse modulo an odd prime: every entry has a residue. A minor
that is zero is zero modulo p, so the rank modulo p never exceeds the rank; it is smaller only where
p divides all minors of that size. That both primes do so by chance has a probability of about
2^-51: :func:`exact_rank` says "dependent" with that certainty, and "independent" with none missing.
Cost: one elimination for each prime, blockwise in products of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse

Long = NDArray[np.longdouble]
EPS_LONG = float(np.finfo(np.longdouble).eps)
AT_ONCE = 2**20  # entries of a dense matrix that are lengthened at once
SPLIT = 2.0**27 + 1
SPARSE = 4  # a matrix with less than one entry in so many is sparse


def product(matrix: Any, v: Array | Long) -> Long:
    """matrix @ v of a dense or sparse matrix; accumulated in the long format."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[0], dtype=np.longdouble)
    v = v.astype(np.longdouble)
    if is_sparse(matrix) or matrix.size <= AT_ONCE:
        return np.asarray(matrix.astype(np.longdouble, copy=False) @ v)
    some = max(1, AT_ONCE // matrix.shape[1])
    parts = [matrix[k : k + some] for k in range(0, len(matrix), some)]
    return np.concatenate([part.astype(np.longdouble) @ v for part in parts])


def dot(u: Array, v: Array) -> Array:
    """u'v in halves, rounded once: products in two parts (Dekker 1971), and an exact sum of them.

    However much cancels, the sum of the halves is right to 2^-105 of it; parts below the least
    double are lost.
    """
    (a, j), (b, k) = np.frexp(u), np.frexp(v)
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    high = a * b
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    with np.errstate(over="ignore"):
        terms = np.ldexp(np.concatenate([high, low]), np.concatenate([j + k, j + k])).tolist()
    whole = rounded_sum(terms)
    return np.array([whole, rounded_sum([*terms, -whole])])


def rounded_sum(values: Iterable[float]) -> float:
    """Their sum, rounded once; NaN where it is none, or no double."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return math.nan


def _split(v: Array) -> tuple[Array, Array]:
    """v as sums of two numbers of 26 bits."""
    high = SPLIT * v
    high = high - (high - v)
    return high, v - high


def thinned(matrix: Any) -> Any:
    """The matrix as it is multiplied often: sparse in the long format where most of it is zero."""
    if is_sparse(matrix) or np.count_nonzero(matrix) <= matrix.size // SPARSE:
        return sp.csr_array(matrix).astype(np.longdouble)
    return np.asarray(matrix)


def halves(v: Long) -> Array:
    """v as two rows of doubles whose sum it is: what travels."""
    high = v.astype(np.float64)
    low = (v - high).astype(np.float64)
    return np.concatenate([high, low])


def summed(rows: Array) -> Long:
    """The sum of rows of halves, in row order."""
    half = rows.shape[1] // 2
    total: Long = np.zeros(half, dtype=np.longdouble)
    for row in rows:
        total += row[:half].astype(np.longdouble) + row[half:].astype(np.longdouble)
    return total


def gradient_rounding(gradient: Array | Long, point: Array | Long, L: float) -> float:
    """What rounding may have taken from a gradient: 4 eps size (L ||point|| + ||gradient||).

    eps is that of the gradient's format; a point of more digits counts as one of doubles there.
    """
    unit = float(np.finfo(gradient.dtype).eps)
    return 4 * unit * (len(point) + 2) * (L * norm(point) + norm(gradient))


def norm(v: Any) -> float:
    """||v|| as a double."""
    long = np.asarray(v, dtype=np.longdouble)
    return float(np.sqrt(np.sum(long * long)))


def square(v: Any) -> float:
    """||v||^2 as a double; infinite where it is beyond."""
    length = norm(v)
    return length * length


# -- modulo primes -------------------------------------------------------------------------------
Residues = NDArray[np.int64]
PRIMES = (50647067, 59470597)  # of 26 bits, drawn at random: a product of residues is a double
BLOCK = 32  # rows eliminated at a time
TERMS = 2**14  # products of 13 and 26 bits whose sum is exact in a double
HALF = 2**13
EXPONENTS = 1200  # beyond those of doubles and their mantissas


@lru_cache
def _powers(prime: int) -> Residues:
    """2^k modulo the prime, k = -EXPONENTS .. EXPONENTS."""
    return np.array([pow(2, k, prime) for k in range(-EXPONENTS, EXPONENTS + 1)], dtype=np.int64)


def residues(matrix: Array, prime: int) -> Residues:
    """Every entry modulo the prime."""
    mantissa, exponent = np.frexp(matrix)
    whole = np.ldexp(mantissa, 53).astype(np.int64) % prime
    return np.asarray(whole * _powers(prime)[exponent - 53 + EXPONENTS] % prime)


def product_modulo(left: Residues, right: Residues, prime: int) -> Residues:
    """left @ right modulo the prime."""
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    for start in range(0, left.shape[1], TERMS):
        part = slice(start, start + TERMS)
        other = right[part].astype(np.float64)
        high = (left[:, part] // HALF).astype(np.float64) @ other
        low = (left[:, part] % HALF).astype(np.float64) @ other
        total += high.astype(np.int64) % prime * HALF + low.astype(np.int64)
        total %= prime
    return total


def eliminated(
    matrix: Residues, prime: int, columns: int | None = None
) -> tuple[Residues, Residues]:
    """(independent rows, what is left of the others) after pivots in the first ``columns`` (all).

    The rows returned first are as many as the rank of these columns; the others are zero there.
    """
    wide = matrix.shape[1] if columns is None else columns
    found = matrix[:0]
    left = [matrix[:0]]
    pivots: list[int] = []
    for start in range(0, len(matrix), BLOCK):
        rows = matrix[start : start + BLOCK]
        if pivots:
            rows = (rows - product_modulo(rows[:, pivots], found, prime)) % prime
        rows, new = _reduced(rows, prime, wide)
        kept = rows[: len(new)]
        rest = rows[len(new) :]
        if pivots and new:
            found = (found - product_modulo(found[:, new], kept, prime)) % prime
        found = np.vstack([found, kept])
        pivots = pivots + new
        left.append(rest)
    return found, np.vstack(left)


def _reduced(rows: Residues, prime: int, wide: int) -> tuple[Residues, list[int]]:
    """Reduced echelon form in the first ``wide`` columns, with the columns of its pivots."""
    rows = rows.copy()
    pivots = list[int]()
    chosen = list[int]()
    for k in range(len(rows)):
        column = int(np.argmax(rows[k, :wide] != 0)) if wide else 0
        if not wide or not rows[k, column]:
            continue
        rows[k] = rows[k] * pow(int(rows[k, column]), -1, prime) % prime
        factors = rows[:, column].copy()
        factors[k] = 0
        touched = np.flatnonzero(factors)
        rows[touched] = (rows[touched] - factors[touched, None] * rows[k]) % prime
        pivots.append(column)
        chosen.append(k)
    others = [k for k in range(len(rows)) if k not in set(chosen)]
    return rows[chosen + others], pivots


def rank_modulo(matrix: Residues, prime: int) -> int:
    """The rank modulo the prime."""
    slim = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return len(eliminated(slim, prime)[0])


def exact_rank(matrix: Array) -> int:
    """The rank of the matrix as it is given, to the last digit."""
    return max(rank_modulo(residues(matrix, prime), prime) for prime in PRIMES)


def image_of_kernel(matrix: Array, rows: Array, prime: int, wide: int | None = None) -> Residues:
    """Independent columns that span matrix ker(rows), modulo the prime: (m, at most m).

    Zero columns are added up to ``wide``.
    """
    stacked = np.vstack([residues(rows, prime), residues(matrix, prime)]).T
    inside = eliminated(stacked, prime, len(rows))[1][:, len(rows) :]
    found = eliminated(inside, prime)[0].T
    return np.pad(found, ((0, 0), (0, 0 if wide is None else wide - found.shape[1])))


def side_on_kernel(matrix: Array, rows: Array, sides: tuple[Array, Array], prime: int) -> Residues:
    """b - matrix x for an x with rows x = c, modulo the prime, after a 1 where there is none.

    ``sides`` are (b, c).
    """
    (b, c), count = sides, len(rows)
    stacked = np.vstack([residues(rows, prime), residues(matrix, prime)]).T
    known = eliminated(stacked, prime, count)[0]
    last = residues(np.concatenate([c, b])[None], prime)
    if len(known):
        pivots = np.argmax(known[:, :count] != 0, axis=1)
        last = (last - product_modulo(last[:, pivots], known, prime)) % prime
    return np.append(np.any(last[0, :count]), last[0, count:])


def packed(first: Residues, second: Residues) -> Array:
    """Residues modulo the two primes in one double each: what travels."""
    return np.asarray(first + second * float(2**26))


def unpacked(sent: Array) -> tuple[Residues, Residues]:
    """What :func:`packed` says."""
    whole = sent.astype(np.int64)
    return whole % 2**26, whole // 2**26
