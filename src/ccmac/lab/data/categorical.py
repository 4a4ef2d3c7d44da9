"""Look-alikes of one-hot encoded tables (census, mushrooms).

Every attribute takes one of its categories, or none where the original has gaps. The share of the
categories falls off geometrically after the first, as in the originals. Attributes depend on each
other through a hidden type of the row: attribute g reads its category off its own shares at

    u = o_g(t) + s_t v  with chance ``coherence``,   u = v  otherwise,

t the row's type, s_t the share of that type, v uniform, and [o_g(t), o_g(t) + s_t) the place of
type t when the types are laid side by side on [0, 1] in an order drawn for g. Both choices leave u
uniform, so the categories keep their shares whatever the dependence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ccmac.inputs import Array


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
    """Attributes, and the hidden types that tie them together: their number, the ratio of the
    share of one type to that of the type before it, and how often an attribute follows its type.
    """

    attributes: tuple[Attribute, ...]
    types: int
    type_ratio: float
    coherence: float


def _table(coherence: float, type_ratio: float, *attributes: tuple[float, ...]) -> Table:
    made = (Attribute(int(size), *rest) for size, *rest in attributes)
    return Table(tuple(made), types=24, type_ratio=type_ratio, coherence=coherence)


# (size, lead, ratio, present) of each attribute, read off the originals.
CENSUS = _table(
    0.8, 0.9,
    (5, 0.217), (8, 0.697, 0.50, 0.944), (5, 0.200), (16, 0.323, 0.70), (5, 0.323, 0.75),
    (7, 0.460, 0.35), (14, 0.127, 0.90, 0.943), (6, 0.405, 0.60), (5, 0.854, 0.35), (2, 0.669),
    (2, 0.917), (2, 0.953), (5, 0.467, 0.65), (41, 0.896, 0.90, 0.982),
)  # fmt: skip
MUSHROOMS = _table(
    0.92, 0.8,
    (6, 0.450, 0.30), (4, 0.399, 0.50), (10, 0.281, 0.70), (2, 0.584), (9, 0.434, 0.50),
    (2, 0.974), (2, 0.839), (2, 0.691), (12, 0.213, 0.75), (2, 0.567), (4, 0.637, 0.25),
    (4, 0.608, 0.30), (9, 0.549, 0.45), (9, 0.540, 0.45), (1, 1.000), (4, 0.975, 0.60),
    (3, 0.922, 0.05), (5, 0.488, 0.40), (9, 0.294, 0.60), (6, 0.497, 0.50), (7, 0.387, 0.60),
)  # fmt: skip


def one_hot(table: Table, rows: int, rng: np.random.Generator) -> csr_array[np.float64]:
    """Draw ``rows`` rows of the one-hot matrix of ``table``.

    Uses uniform draws, additions, products and comparisons only, whose results IEEE arithmetic
    fixes: the matrix is the same on every platform.
    """
    ends = np.cumsum(_geometric(table.types, table.type_ratio))
    share = np.diff(ends, prepend=0.0) / ends[-1]
    row_type = np.minimum(
        np.searchsorted(ends, rng.random(rows) * ends[-1], side="right"), table.types - 1
    )
    columns, present = [], []
    first = 0
    for attribute in table.attributes:
        order = rng.permutation(table.types)
        offset = np.empty(table.types)
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
