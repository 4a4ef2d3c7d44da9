"""Rows on their way between processes: whole, or the entries that somebody is known to have.

``own`` says which agent may have an entry in which column (None: everybody in all of them), or also
that these agents alone want the sums (:class:`~ccmac.runtime.few.Few`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime import halo
from ccmac.runtime.averaging import Averaging, Pattern, Step, Tree
from ccmac.runtime.few import Few
from ccmac.runtime.partition import Index, owners

if TYPE_CHECKING:
    from ccmac.runtime.distributed import Distributed


Own = Pattern | Few | None
Blocks = Sequence[Array]
PATTERNS = 64  # whose loads are kept
_Loads = dict[int, tuple[Pattern, tuple[Index, Index]]]
_known: WeakKeyDictionary[Averaging, _Loads] = WeakKeyDictionary()


def load(scheme: Averaging, own: Pattern | Few, more: int) -> tuple[int, int, int, int]:
    """(floats of the busiest agent, of all, in the longest message, messages) of rows with a
    pattern and ``more`` columns that everybody has.
    """
    if isinstance(own, Few):
        return own.load(scheme, more)
    loads = _known.setdefault(scheme, {})
    if id(own) not in loads:
        if len(loads) >= PATTERNS:
            loads.clear()
        one = np.ones((len(own), 1), dtype=bool)
        loads[0] = one, scheme.carried(one)
        loads[id(own)] = own, scheme.carried(own)  # with its pattern, so that an id stays its own
    (sent, lengths), (each, rows) = loads[id(own)][1], loads[0][1]
    sent = sent + more * each
    lengths = lengths + more * rows
    return int(sent.max()), int(sent.sum()), int(lengths.max(initial=0)), scheme.messages


def relayed(
    runtime: Distributed, steps: Sequence[Step], block: Array, own: Pattern | None
) -> Array:
    """All agents' rows."""
    table = np.zeros((runtime.n, block.shape[1]))
    table[runtime.owned.start : runtime.owned.stop] = block
    for sent, received in steps:
        leaving = [(p, _packed(table, rows, own), len(rows)) for p, rows in sent]
        arriving = [(p, _packed(table, rows, own), len(rows)) for p, rows in received]
        runtime._exchange("relay", leaving, arriving)
        for (_, rows), (_, arrived, _) in zip(received, arriving, strict=True):
            if own is not None:
                _unpack(arrived, table, rows, own)
            elif arrived.base is not table:
                table[rows] = arrived
    return table


def climbed(runtime: Distributed, tree: Tree, block: Array, own: Pattern) -> Array:
    """Sums of branches, of the columns that they have; the root's row is the sum of all.

    To an agent's own row those of its children are added in agent order: the bits are those of
    :meth:`Tree.total`.
    """
    below = tree.below(own)
    first = runtime.owned.start
    owner = owners(np.arange(runtime.n), runtime._ends)
    table = np.zeros((runtime.n, block.shape[1]))
    table[first : runtime.owned.stop] = block + 0.0  # no sum is -0.0
    for members in tree.levels:
        at = owner[members]
        to = owner[tree.parent[members]]
        out, into = ((a == runtime.rank) & (b != runtime.rank) for a, b in ((at, to), (to, at)))
        leaving = [(int(p), members[out & (to == p)]) for p in np.unique(to[out])]
        coming = [(int(p), members[into & (at == p)]) for p in np.unique(at[into])]
        arriving = [(p, _packed(table, rows, below), len(rows)) for p, rows in coming]
        runtime._exchange(
            "halo", [(p, _packed(table, rows, below), len(rows)) for p, rows in leaving], arriving
        )
        for (_, rows), (_, arrived, _) in zip(coming, arriving, strict=True):
            _unpack(arrived, table, rows, below)
        for v in members[to == runtime.rank]:
            table[tree.parent[v], below[v]] += table[v, below[v]]
    return table[first : runtime.owned.stop]


def _packed(table: Array, rows: Index, own: Pattern | None) -> Array:
    """The entries of these rows, one after the other."""
    if own is None:
        return halo.rows_of(table, rows)
    return np.concatenate([table[row, own[row]] for row in rows])


def _unpack(entries: Array, table: Array, rows: Index, own: Pattern) -> None:
    ends = np.cumsum([int(own[row].sum()) for row in rows])[:-1]
    for row, piece in zip(rows, np.split(entries, ends), strict=True):
        table[row, own[row]] = piece
