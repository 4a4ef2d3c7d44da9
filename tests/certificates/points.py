"""Workspaces of drafts, and exact distances and slopes at points, for tests of certificates."""

from __future__ import annotations

import numpy as np
from flint import fmpq_mat

from adversarial.draft import Array, Draft
from adversarial.exact import Exact, chosen, column, norm, pivots
from ccmac import Network
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


def workspace(draft: Draft, network: Network | None = None) -> Workspace:
    """The draft's problem on the complete graph, or another."""
    return Workspace(draft.problem(), InProcess(network or Network.complete(draft.n)))


def onto_rows(rows: fmpq_mat, v: fmpq_mat) -> fmpq_mat:
    """The part of v in the row space, in rational arithmetic."""
    keep = chosen(rows, pivots(rows.transpose()))
    if not keep.nrows():
        return fmpq_mat(v.nrows(), 1)
    return keep.transpose() * (keep * keep.transpose()).solve(keep * v)


def distance(exact: Exact, u: fmpq_mat) -> float:
    """From u to {G u = h}, rounded once."""
    if not exact.rank:
        return 0.0
    keep = chosen(exact.G, exact.independent)
    right = chosen(exact.h, exact.independent)
    off = keep * u - right
    return norm(keep.transpose() * (keep * keep.transpose()).solve(off))


def slope(exact: Exact, u: fmpq_mat, price: Array) -> fmpq_mat:
    """grad F(u) + (A'y, Bbar'y)."""
    coupled = chosen(exact.G, range(exact.draft.m))
    total = exact.H * u - exact.g
    return total + coupled.transpose() * column(price) if exact.draft.m else total


def stationarity(exact: Exact, u: fmpq_mat, price: Array) -> float:
    """dist(grad F(u) + (A'y, Bbar'y), Range [C' 0; 0 D'])."""
    g = slope(exact, u, price)
    rest = chosen(exact.G, range(exact.draft.m, exact.G.nrows()))
    return norm(g - onto_rows(rest, g)) if rest.nrows() else norm(g)


def flat(draft: Draft, x: list[Array], z: Array) -> tuple[Array, Array]:
    """(flat x, one row of z for every agent)."""
    copies = np.ascontiguousarray(np.broadcast_to(z, (draft.n, draft.q)))
    return (np.concatenate(x) if x else np.zeros(0)), copies


def pieces(draft: Draft, x: Array) -> list[Array]:
    """Flat x by agents."""
    return np.split(x, np.cumsum(draft.d)[:-1])
