"""Raw data of a problem, exact in binary, and the ccmac problem made of them.

Entries are small integers times powers of two. The right-hand sides are read off a planted point in
rational arithmetic, and a draft whose right-hand sides are no double-precision numbers is an error
of the generator: what the solver sees is exactly what the reference solves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import aslinearoperator

from ccmac import Agent, Network, Problem
from ccmac.objectives import Objective, Quadratic

Array = NDArray[np.float64]
STORAGES = (
    "dense",
    "fortran",
    "csr_array",
    "csc_array",
    "coo_array",
    "csr_matrix",
    "csc_matrix",
    "coo_matrix",
    "operator",
    "linear_operator",
)


class Operator:
    """The least that counts as an operator: a shape and the two products."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.shape = matrix.shape

    def matvec(self, v: Array) -> Array:
        """M v."""
        return self.matrix @ v

    def rmatvec(self, v: Array) -> Array:
        """M' v."""
        return self.matrix.T @ v


def stored(matrix: Array, storage: str) -> Any:
    """The same matrix in another storage."""
    if storage == "dense":
        return matrix.copy()
    if storage == "fortran":
        return np.asfortranarray(matrix)
    if storage.startswith("int"):
        whole = matrix.astype(storage if storage != "int_csr" else "int32")
        if not np.array_equal(whole, matrix):
            raise AssertionError(f"the generator made entries that are no {storage}")
        return sp.csr_array(whole) if storage == "int_csr" else whole
    if storage == "strided":
        return np.repeat(matrix, 2, axis=1)[:, ::2] if matrix.size else matrix.copy()
    if storage == "readonly":
        out = matrix.copy()
        out.flags.writeable = False
        return out
    if storage == "operator":
        return Operator(matrix.copy())
    if storage == "linear_operator":
        return aslinearoperator(matrix.copy())
    return getattr(sp, storage)(matrix)


@dataclass
class Form:
    """u'Hu/2 - g'u + constant, exactly, and the objective that a user would write for it.

    ``sizes``: of the terms of its value, as (H, g, constant) of absolute values.
    """

    objective: Objective
    H: list[list[Fraction]]
    g: list[Fraction]
    constant: Fraction = Fraction(0)
    sizes: tuple[Array, Array, float] | None = None


@dataclass
class Draft:
    """Blocks of all agents as dense arrays, a planted point, and how to hand them over.

    ``H[i]``, ``g[i]``: f_i(u) = u'H u/2 - g'u, or as the ``forms`` say. ``left_out``: blocks given
    as None (they must be zero or without rows here). ``storage``: one name, or None for a random
    one for each block.
    """

    random: np.random.Generator
    d: list[int]
    q: int
    m: int
    A: list[Array]
    B: list[Array]
    C: list[Array]
    D: list[Array]
    x: list[Array]
    z: Array
    H: list[Array] = field(default_factory=list)
    g: list[Array] = field(default_factory=list)
    b: list[Array] = field(default_factory=list)
    c: list[Array] = field(default_factory=list)
    e: list[Array] = field(default_factory=list)
    left_out: set[tuple[int, str]] = field(default_factory=set)
    storage: str | None = "dense"
    forms: list[Form] = field(default_factory=list)

    def shaped(self, forms: list[Form]) -> Draft:
        """With these objectives; H and g become their rounding."""
        self.forms = forms
        self.H = [np.array(form.H, dtype=np.float64) for form in forms]
        self.g = [np.array(form.g, dtype=np.float64) for form in forms]
        return self

    @property
    def n(self) -> int:
        """How many agents."""
        return len(self.d)

    def plant(self, drift: bool = True) -> Draft:
        """Right-hand sides that the planted point satisfies exactly; the b_i share their sum."""
        self.b = [
            added(exact_product(self.A[i], self.x[i]), exact_product(self.B[i], self.z))
            for i in range(self.n)
        ]
        if drift and self.n > 1 and self.m:
            moves = self.random.integers(-4, 5, size=(self.n, self.m)).astype(float)
            moves[-1] = -moves[:-1].sum(axis=0)
            shifted = [added(b, v) for b, v in zip(self.b, moves, strict=True)]
            if all(map(_is_exact, shifted)):
                self.b = shifted
        self.c = [exact_product(self.C[i], self.x[i]) for i in range(self.n)]
        self.e = [exact_product(self.D[i], self.z) for i in range(self.n)]
        self.b, self.c, self.e = (
            [as_doubles(v) for v in sides] for sides in (self.b, self.c, self.e)
        )
        return self

    def problem(self) -> Problem:
        """The problem as a user would give it."""
        agents = []
        for i in range(self.n):
            blocks: dict[str, Any] = {}
            for name in "ABCD":
                matrix = getattr(self, name)[i]
                if (i, name) in self.left_out:
                    if matrix.any():
                        raise AssertionError(f"block {name} of agent {i} is not zero")
                    continue
                storage = self.storage or str(self.random.choice(STORAGES))
                blocks[name] = stored(matrix, storage)
            sides: dict[str, Any] = {"b": self.b[i]}
            if (i, "C") not in self.left_out:
                sides["c"] = self.c[i]
            if (i, "D") not in self.left_out:
                sides["e"] = self.e[i]
            objective = self.forms[i].objective if self.forms else Quadratic(self.H[i], self.g[i])
            agents.append(Agent(objective, **blocks, **sides))
        return Problem(agents, q=self.q, m=self.m)

    # -- stacked on u = (x_1, ..., x_n, z), for the reference ---------------------------------
    def rows(self) -> tuple[Array, list[Fraction], list[str]]:
        """(G, h, block of each row): coupled rows first, then all C_i, then all D_i.

        G is exact (a sum of B_i that is no double-precision number is an error); h is rational.
        """
        total = sum(self.d)
        start = 0
        coupled = np.zeros((self.m, total + self.q))
        coupled[:, total:] = summed(self.B, (self.m, self.q))
        local = []
        shared = []
        for i, d in enumerate(self.d):
            coupled[:, start : start + d] = self.A[i]
            row = np.zeros((len(self.c[i]), total + self.q))
            row[:, start : start + d] = self.C[i]
            local.append(row)
            row = np.zeros((len(self.e[i]), total + self.q))
            row[:, total:] = self.D[i]
            shared.append(row)
            start += d
        right = [sum((Fraction(b[k]) for b in self.b), Fraction(0)) for k in range(self.m)]
        right += [Fraction(v) for c in self.c for v in c] + [Fraction(v) for e in self.e for v in e]
        kinds = ["coupled"] * self.m
        kinds += ["local"] * sum(map(len, self.c)) + ["shared"] * sum(map(len, self.e))
        return np.vstack([coupled, *local, *shared]), right, kinds

    def objective(self) -> tuple[list[list[Fraction]], list[Fraction]]:
        """(H, g) of the sum of the objectives on u, in rational arithmetic."""
        total = sum(self.d)
        start = 0
        size = total + self.q
        H = [[Fraction(0)] * size for _ in range(size)]
        g = [Fraction(0)] * size
        for i, d in enumerate(self.d):
            at = [*range(start, start + d), *range(total, size)]
            own_H = self.H[i].tolist()
            own_g = self.g[i].tolist()
            if self.forms:
                own_H = self.forms[i].H
                own_g = self.forms[i].g
            for j, row in enumerate(at):
                g[row] += Fraction(own_g[j])
                for k, column in enumerate(at):
                    if own_H[j][k]:
                        H[row][column] += Fraction(own_H[j][k])
            start += d
        return H, g

    @property
    def constant(self) -> Fraction:
        """Of the sum of the objectives."""
        return sum((form.constant for form in self.forms), Fraction(0))

    def size_of_value(self, i: int, u: Array) -> float:
        """Of the terms that f_i(u) is summed from."""
        given = self.forms[i].sizes if self.forms else None
        H, g, c = given or (abs(self.H[i]), abs(self.g[i]), 0.0)
        return float(abs(u) @ H @ abs(u) + g @ abs(u) + c)


@dataclass
class Case:
    """A draft with the network and the accuracy to solve it with."""

    family: str
    seed: int
    draft: Draft
    network: Network
    tol: float
    note: str = ""


def exact_product(matrix: Array, v: Array) -> list[Fraction]:
    """M v in rational arithmetic."""
    point = [Fraction(float(value)) for value in v]
    return [
        sum((Fraction(float(a)) * p for a, p in zip(row, point, strict=True) if a), Fraction(0))
        for row in matrix
    ]


def added(first: Any, second: Any) -> list[Fraction]:
    """Entrywise sum in rational arithmetic."""
    return [Fraction(a) + Fraction(b) for a, b in zip(first, second, strict=True)]


def as_doubles(values: list[Fraction]) -> Array:
    """The values as double-precision numbers, which they must be exactly."""
    if not _is_exact(values):
        raise AssertionError("the generator made a right-hand side that is not exact in binary")
    return np.array([float(v) for v in values], dtype=np.float64)


def summed(blocks: list[Array], shape: tuple[int, int]) -> Array:
    """The sum of the blocks, which must be exact in double precision."""
    out = np.zeros(shape)
    for j in range(shape[0]):
        values = [
            sum((Fraction(float(block[j, k])) for block in blocks), Fraction(0))
            for k in range(shape[1])
        ]
        out[j] = as_doubles(values)
    return out


def _is_exact(values: list[Fraction]) -> bool:
    return all(Fraction(float(v)) == v for v in values)
