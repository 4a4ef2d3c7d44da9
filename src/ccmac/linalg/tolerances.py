"""Every tolerance of the linear algebra and of the angles, once, with its argument.

Relative unless a line says otherwise. ``EPS`` is the distance from 1 to the next number.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)

# -- ranks and row spaces ------------------------------------------------------------------------
RANK = 1e-12
"""Singular values of rows of unit length below this share of the largest are zero.

The rows are known to eps each and their decomposition to eps max(shape), which reaches 1e-12 at
4,500 rows or columns; beyond that :func:`ccmac.linalg.ranks.rank_cut` grows with them. Smaller
matrices keep the difference for dependent rows that were computed with some cancellation."""
GRAM_RANK = 1e-11
"""Eigenvalues of a Gram matrix below this share of the largest are zero. They are squares, known to
eps times the largest and its size, some 1e-12 for the sizes that are formed: smaller ones may be
zeros, and singular values below 3e-6 of the largest are not told from them."""
UNEVEN = 256.0
"""Row lengths beyond this, or its inverse, are evened out before rows are squared as they are: the
squares of the rest differ by at most 256^4 = 4e9, which a Gram matrix still tells from rounding."""
CONSISTENCY = 1e-9
"""Distance of a right-hand side from the range, in rows of unit length and beside max(1, its norm),
above which the equations contradict each other. A direction kept at the rank cut carries errors of
eps / RANK = 2e-4 in its coordinate, but moves the rows by eps only; 1e-9 is far above and still
below any error one would call small."""
PROJECTOR = 1e-14
"""Error of a projector applied as a polynomial: that of rounding, so that it may be composed."""

# -- angles --------------------------------------------------------------------------------------
OVERLAP = 1e-10
"""Principal angles (rad) below this are exact common directions, where the bases are direct. The
square of the sine is then eps^{1.3}: no method working with squares could see the angle."""
OVERLAP_NOISE = 100 * EPS
"""Error of a basis per condition of its rows: below this times the condition angles are noise."""
LARGE_OVERLAP = 1e-7
"""The same as OVERLAP where projections are iterative: LSMR stops at 1e-12, and a direction found
from a residual of RITZ (1 - c^2) is good to its root."""
ZERO_COSINE = 8 * EPS
"""What rounding leaves of a zero cosine: an inner product of two unit vectors."""
ORTHOGONAL = 1e-12
"""chi - 1, or a share of a random vector, below which two row spaces are said to be orthogonal."""
VANISHED = 1e-8
"""A random vector keeps about sqrt(dim U / size) of its length in U; far less: U is used up."""
LSMR = 1e-12
"""Backward error at which an iterative projection stops; a few hundred eps lie above stagnation."""
FACTORED_SHIFT = 1e-13
"""Added to a Gram matrix of unit rows so that dependent rows pass its sparse factorization."""
FACTORED_TRIAL = 1e-11
"""What two refinements may leave of a trial vector before the factorization is not used."""

WEIGHT_SUM = 1e-12
"""How far weights may be from adding up to one, beside the sum of their sizes: n eps and some."""

# -- Lanczos -------------------------------------------------------------------------------------
RITZ = 1e-5
"""Residual at which block Lanczos stops, relative to the distance from the largest value there can
be: the eigenvalue is then good to about the square."""
RITZ_FLOOR = 1e-4
"""Distances below this share of the ceiling are not resolved any further."""
FRESH = 1e-13
"""How far a vector just projected may lie outside the subspace: LSMR's stop, less what it gains."""
DRIFT = 1e-10
"""How far it may get before it is projected again: well below what RITZ can notice."""
DEPENDENT = 1e-10
"""Columns whose independent part is below this share of the largest add no direction."""
SWAMPED = 1e-9
"""Share of an image below which its part outside the basis is mostly rounding."""
BREAKDOWN = 1e-9
"""A remainder below this share of the operator's size is zero: twice orthogonalized vectors carry
errors of a few hundred eps, so what is left below 1e-9 has few digits and would not converge."""
BREAKDOWN_PARTIAL = 1e-8
"""The same where only the last vectors are orthogonalized against and lengths come from a
difference of squares, which knows them to sqrt(eps) = 1.5e-8."""
REORTHOGONAL = 1e-2
"""What a unit vector must keep in another orthogonalization: less, and it was not a new one."""
KERNEL = 1e-10
"""Eigenvalues of a Krylov matrix below this share of the largest belong to the kernel: errors of
BREAKDOWN in a vector are 1e-18 in a Ritz value, those of rounding some hundred eps."""
LANCZOS_LOW = 1e-7
"""A least eigenvalue below this share of the largest cannot be told from zero: it is found as the
difference of two ends, each good to about RITZ squared."""
LANCZOS_LOW_RESIDUAL = 1e-2
"""Residual over the least eigenvalue above which it is not believed."""

# -- extremes of a spectrum ----------------------------------------------------------------------
EXTREME_MARGIN = 1e-6
"""By how much ends from ARPACK (tolerance eps, from inside) are widened: half the digits kept."""
DENSE_MARGIN = 1e-10
"""The same for ends from a dense decomposition, which knows them to eps max(shape)."""
EXTREME_ZERO = 1e-13
"""A smallest eigenvalue below this share of the largest is the rounding of a decomposition."""

# -- products and residuals ----------------------------------------------------------------------
ADJOINT = 1e-12
"""Gap between <Ku, v> and <u, K'v> that rounding explains: eps for each of a few thousand terms."""
STAGNATION = 1e-9
"""Growth of a squared residual norm, monotone in exact arithmetic, that is still rounding."""
SETTLED = 1e-30
"""Of the first of the squares that shall fall: far below eps squared, nothing is left to reduce."""
SWELLED = 1e8
"""Such a square over the least one seen: it grows by rounding, or equations are in conflict."""

# -- Chebyshev -----------------------------------------------------------------------------------
POINT = 1e-12
"""A graph's eigenvalues within this of each other are one (complete graphs): they come from a
decomposition, which knows them to n eps."""
DEGREE_SLACK = 1e-9
"""Subtracted before a degree is rounded up: rounding in sqrt or acosh must not cost a degree."""
APART = 1e12
"""Ends of a spectrum farther apart than this: below 1e-12 of the largest, an eigenvalue is not told
from zero (the cut of ranks), and a polynomial that treats it as positive has a million terms."""
GRID_DEGREE = 2000
"""Beyond it a polynomial's range is that of its proved error: a grid would take seconds."""
GRID_SLACK = 1e-3
"""Of a polynomial's range on a grid of 64 points per oscillation, where the extremes between the
points are missed by at most (pi / 128)^2 / 2 = 3e-4 of it."""
GRID_ROUNDING = 1e-14
"""Error of the polynomial's values, which are about 1, in a recurrence of some dozen steps."""
