"""Equilibration (Ruiz): units of unknowns and rows in which the KKT matrix has entries of size one.

    P' = k f S P S,  c' = k S c,  G' = R G S,  H' = R H S_z,  h' = R h / f,
    A' = E A S,  B' = E B S_z,  b' = E b / f

S and R are an agent's own (one number for each cone of R). S_z, E, k and f are agreed: their
columns and rows belong to all. f is the size of the right-hand sides, so that unknowns are near 1.
Cost: one averaging a sweep, and a few numbers of every agent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.runtime import Runtime
from ccmac.workspace.conic import Sparse, StandardForm

LEAST, LARGEST = 1e-4, 1e4  # of a factor


@dataclass
class Units:
    """u = f S u', slacks s = f R^{-1} s', multipliers v = R v' / k and lambda = E lambda' / k."""

    y: Array
    rows: Array
    z: Array
    coupled: Array
    cost: float = 1.0
    far: float = 1.0


def equilibrating(models: list[StandardForm], runtime: Runtime) -> list[Units]:
    """The units for the agents held here; smooth functions count as their models at zero."""
    models = [p.near(np.zeros(p.size), np.zeros(len(p.c_z))) for p in models]
    q = len(models[0].c_z)
    m = len(models[0].b)
    z = np.ones(q)
    coupled = np.ones(m)
    units = [Units(np.ones(p.size), np.ones(p.rows), z, coupled) for p in models]
    # two sweeps, agreed by all
    for _ in range(2):
        shares = []
        for p, own in zip(models, units, strict=True):
            # four of each agent before each of them
            for _ in range(4):
                _own_sweep(p, own)
            now = scaled(p, own)
            on_z = _squares(now.P_z) + _squares(now.H) + _squares(now.B) + _squares(now.P_zz)
            shares.append(np.concatenate([on_z, _squares(now.A.T) + _squares(now.B.T)]))
        if not q + m:
            break
        total = runtime.average(np.stack(shares))[0] * runtime.n
        factor = 1.0 / np.sqrt(np.sqrt(np.where(total > 0, total, 1.0)))
        z = np.clip(z * factor[:q], LEAST, LARGEST)
        coupled = np.clip(coupled * factor[q:], LEAST, LARGEST)
        for own in units:
            own.z = z
            own.coupled = coupled
    _agree_on_sizes(models, units, runtime)
    return units


def _agree_on_sizes(models: list[StandardForm], units: list[Units], runtime: Runtime) -> None:
    """k and f from the largest slope and curvature of all, and from right-hand sides: of the agent
    where they are largest, the mean (one bound far away is no measure of the solution).
    """
    sizes = []
    for p, own in zip(models, units, strict=True):
        now = scaled(p, own)
        steep = max(_size(now.c), _size(now.c_z))
        curved = float(np.sqrt(_squares(now.P)).mean()) if now.size else 0.0
        sizes.append([steep, curved, _mean(np.append(now.h, now.b))])
    steep, curved, right = (float(v) for v in runtime.gather(np.array(sizes)).max(axis=0))
    far = max(1.0, right)
    largest = max(steep, curved * far)
    for own in units:
        own.far = far
        own.cost = 1.0 / largest if largest > 0 else 1.0


def _size(v: Array) -> float:
    return float(np.abs(v).max(initial=0.0))


def _mean(v: Array) -> float:
    """Of the entries that are not zero."""
    return float(np.abs(v).sum()) / max(1, int(np.count_nonzero(v)))


def _squares(M: Sparse) -> Array:
    """Sums of squares of the columns."""
    return np.asarray(M.multiply(M).sum(axis=0)).ravel()


def _own_sweep(p: StandardForm, own: Units) -> None:
    """One sweep over an agent's own columns and rows, the agreed ones as they are."""
    now = scaled(p, own)
    columns = np.maximum(np.maximum(_largest(now.P), _largest(now.G)), _largest(now.A))
    columns = np.maximum(columns, _largest(now.P_z.T))
    rows = np.maximum(_largest(now.G.T), _largest(now.H.T))
    for _, index in p.cone.groups:
        if index.shape[1] > 1:
            rows[index] = rows[index].max(axis=1, keepdims=True)
    own.y = np.clip(own.y / np.sqrt(np.where(columns > 0, columns, 1.0)), LEAST, LARGEST)
    own.rows = np.clip(own.rows / np.sqrt(np.where(rows > 0, rows, 1.0)), LEAST, LARGEST)


def _largest(M: Sparse) -> Array:
    """The largest entry of each column."""
    if not M.shape[0] or not M.shape[1]:
        return np.zeros(M.shape[1])
    return np.asarray(abs(M).max(axis=0).todense()).ravel()


def scaled(p: StandardForm, own: Units) -> StandardForm:
    """The model in these units."""
    S = sp.diags_array(own.y)
    R = sp.diags_array(own.rows)
    Z = sp.diags_array(own.z)
    E = sp.diags_array(own.coupled)
    k = own.cost
    unit = own.far * np.append(own.y, own.z)
    return replace(
        p,
        P=sp.csr_array(k * own.far * (S @ p.P @ S)),
        P_z=sp.csr_array(k * own.far * (S @ p.P_z @ Z)),
        P_zz=sp.csr_array(k * own.far * (Z @ p.P_zz @ Z)),
        c=k * own.y * p.c,
        c_z=k * own.z * p.c_z,
        G=sp.csr_array(R @ p.G @ S),
        H=sp.csr_array(R @ p.H @ Z),
        h=own.rows * p.h / own.far,
        A=sp.csr_array(E @ p.A @ S),
        B=sp.csr_array(E @ p.B @ Z),
        b=own.coupled * p.b / own.far,
        smooth=tuple(part.scaled(unit, k / own.far) for part in p.smooth),
    )
