"""Hessians of the package's functions, from their slopes.

Quadratics know theirs. What acts entry by entry, g(v) = sum_j g_j(v_j), and the losses of Mv have
second derivatives that are sums over entries, taken by central differences of the slope: two
gradients each, accurate enough for the speed of Newton's method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.symmetric import diagonal_matrix
from ccmac.objectives.base import Objective
from ccmac.objectives.concomitant import ConcomitantHuber
from ccmac.objectives.custom import Custom
from ccmac.objectives.entrywise import rise
from ccmac.objectives.function import Function
from ccmac.objectives.intercept import Intercept
from ccmac.objectives.loss import Loss
from ccmac.objectives.multinomial import Multinomial
from ccmac.objectives.separable import Separable
from ccmac.objectives.sum import Sum


def has_hessian(g: Function) -> bool:
    """Whether :func:`hessian_at` knows the Hessian of g."""
    if isinstance(g, Sum) and not g.coordinatewise:
        return all(has_hessian(part) for part in g.parts)
    return "quadratic" in g.capabilities or g.coordinatewise or isinstance(g, Loss)


def hessian_at(g: Function, v: Array) -> Any:
    """g''(v), dense or sparse, up to the error of a central difference."""
    if "quadratic" in g.capabilities:
        return g.quadratic_at(len(v))[0]
    if g.coordinatewise:
        return diagonal_matrix(rise(g.gradient_at, v))
    if isinstance(g, Sum):
        total: Any = hessian_at(g.parts[0], v)
        for part in g.parts[1:]:
            total = add(total, hessian_at(part, v))
        return total
    assert isinstance(g, Loss)
    assert g.M is not None

    def slope(u: Array) -> Array:
        out = np.empty_like(u)
        g.slope(u, out, *g.parameters)
        return np.asarray(g.weight * out)

    weights = rise(slope, g.M @ v)
    return add(g.M.T @ (diagonal_matrix(weights) @ g.M), g.ridge * sp.eye_array(len(v)))


def has_joint_hessian(f: Objective) -> bool:
    """Whether :func:`joint_hessian` knows the Hessian of f."""
    if isinstance(f, Separable):
        return all(part is None or has_hessian(part) for part in (f.x_part, f.z_part))
    if isinstance(f, Custom):
        return f.has_hessian
    return isinstance(f, Function) and has_hessian(f)


def joint_hessian(f: Objective, x: Array, z: Array) -> Array:
    """f''(x, z), dense; of a Custom by its products, one a column."""
    d, size = len(x), len(x) + len(z)
    H = np.zeros((size, size))
    if isinstance(f, Separable):
        for part, v, where in ((f.x_part, x, slice(0, d)), (f.z_part, z, slice(d, size))):
            if part is not None:
                H[where, where] = add(hessian_at(part, v), H[where, where])
    elif isinstance(f, Function):
        H = np.asarray(add(hessian_at(f, np.concatenate([x, z])), H))
    else:
        assert isinstance(f, Custom)
        for j, unit in enumerate(np.eye(size)):
            H[:, j] = np.concatenate(f.hessian_product(x, z, unit[:d], unit[d:]))
        H = 0.5 * (H + H.T)
    return H


def has_gram(g: Function) -> bool:
    """Whether :func:`gram` knows g."""
    return g.coordinatewise or isinstance(g, Intercept | Multinomial | ConcomitantHuber)


def gram(g: Function, v: Array, E: Array) -> Array:
    """E g''(v) E' for rows E, g'' never formed."""
    if isinstance(g, Multinomial | ConcomitantHuber):
        return g.gram(v, E)
    if not isinstance(g, Intercept):
        return np.asarray((E * rise(g.gradient_at, v)) @ E.T)
    # The offset b follows v: the Schur complement of its own second derivative.
    u = g.fitted(v)
    if isinstance(g.loss, Multinomial):
        inner, cross, own = g.loss.gram(u, E), *g.loss.offset_curvature(u, E)
        flat = np.linalg.pinv(own, rcond=1e-12, hermitian=True)  # one class may follow the others
        return np.asarray(inner - cross @ flat @ cross.T)
    bend = rise(g.loss.gradient_at, u)
    mixed, total = E @ bend, float(bend.sum())
    inner = (E * bend) @ E.T
    return np.asarray(inner - np.outer(mixed, mixed) / total if total > 0 else inner)


def add(H: Any, other: Any) -> Any:
    """H + other, sparse while both are."""
    if is_sparse(H) and is_sparse(other):
        return sp.csr_array(H + other)
    return np.asarray((H.toarray() if is_sparse(H) else H) + other)
