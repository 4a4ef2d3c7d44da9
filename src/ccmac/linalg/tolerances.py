"""Every tolerance of the linear algebra and of the angles, once, with its argument.

Relative unless a line says otherwise. ``EPS`` is the distance from 1 to the next number.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)

# -- ranks and row spaces ------------------------------------------------------------------------
# Singular values of rows of unit length below this share of the largest are zero.
#
# The rows are known to eps each and their decomposition to eps max(shape), which reaches 1e-12 at
# 4,500 rows or columns; beyond that :func:`ccmac.linalg.ranks.rank_cut` grows with them. Smaller
# matrices keep the difference for dependent rows that were computed with some cancellation.
RANK = 1e-12
# Eigenvalues of a Gram matrix below this share of the largest are zero. They are squares, known to
# eps times the largest and its size, some 1e-12 for the sizes that are formed: smaller ones may be
# zeros, and singular values below 3e-6 of the largest cannot be distinguished from them.
GRAM_RANK = 1e-11

# -- verdicts ------------------------------------------------------------------------------------
REACH = 1e6
"""Infeasible: no solution shorter than this times max(1, right-hand sides of unit rows, bounds);
unbounded: no minimiser and multipliers that short. It leaves room for the 1e-16 of doubles in
multipliers of contradictions of PROMISED of the data."""
PROMISED = 1e-8
"""Misfits of unit rows relative to the data, and slopes relative to all slopes, below which no
verdict is promised: a hundred times what multipliers known to 1e-16 prove with REACH."""

# -- angles --------------------------------------------------------------------------------------
# Principal angles (rad) below this are exact common directions, where the bases are direct. The
# square of the sine is then eps^{1.3}: no method working with squares could see the angle.
OVERLAP = 1e-10
# Error of a basis per condition of its rows: below this times the condition angles are noise.
OVERLAP_NOISE = 100 * EPS
# The same as OVERLAP where projections are iterative: LSMR stops at 1e-12.
LARGE_OVERLAP = 1e-7
# What rounding leaves of a zero cosine: an inner product of two unit vectors.
ZERO_COSINE = 8 * EPS
# chi - 1, or a share of a random vector, below which two row spaces are said to be orthogonal.
ORTHOGONAL = 1e-12
# A random vector keeps about sqrt(dim U / size) of its length in U; far less: U is used up.
VANISHED = 1e-8

# -- Lanczos -------------------------------------------------------------------------------------
# A remainder below this share of the operator's size is zero: twice orthogonalized vectors carry
# errors of a few hundred eps, so what is left below 1e-9 has few digits and would not converge.
BREAKDOWN = 1e-9
# The same where only the last vectors are orthogonalized against and lengths come from a
# difference of squares, which knows them to sqrt(eps) = 1.5e-8.
BREAKDOWN_PARTIAL = 1e-8
# Eigenvalues of a Krylov matrix below this share of the largest belong to the kernel: errors of
# BREAKDOWN in a vector are 1e-18 in a Ritz value, those of rounding some hundred eps.
KERNEL = 1e-10

# -- extremes of a spectrum ----------------------------------------------------------------------
# The same for ends from a dense decomposition, which knows them to eps max(shape).
DENSE_MARGIN = 1e-10

# -- products and residuals ----------------------------------------------------------------------
# Of the first of the squares that shall fall: far below eps squared, nothing is left to reduce.
SETTLED = 1e-30
# Such a square over the least one seen: it grows by rounding, or equations are in conflict.
SWELLED = 1e8
