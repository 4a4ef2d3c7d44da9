"""What an interior-point method asks of a cone: scaling, product, division, step length, margin.

A cone K is self-dual here, with a Jordan product a o b and its identity e. For s and v inside K the
Nesterov-Todd scaling is the symmetric W with W v = W^{-1} s =: point. All functions act on a batch:
arrays of shape (count, dim), a row for each of ``count`` cones of one kind and one dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array, whole

WRONG = 1e-9  # a multiplier below this, in equilibrated units, is rounding


class Scaling(ABC):
    """The Nesterov-Todd scaling of a batch at (s, v); ``point`` is W v = W^{-1} s."""

    point: Array

    @abstractmethod
    def apply(self, a: Array) -> Array:
        """W a."""

    @abstractmethod
    def inverse(self, a: Array) -> Array:
        """W^{-1} a."""

    @abstractmethod
    def inverse_matrix(self) -> Array:
        """W^{-1}, of shape (count, dim, dim); the identity where there is no scaling."""


class Face(ABC):
    """The faces that slacks s lie on where v are their multipliers, as linear rows.

    With M = ``matrix``, of shape (count, dim, dim), the slacks stay on their faces to second order
    where M ds = ``held`` dv', dv = M'dv': rows without ``held`` are equations, rows of zeros are
    left alone.
    """

    matrix: Array
    held: Array

    @abstractmethod
    def met(self, s: Array, v: Array) -> tuple[Array, Array]:
        """(what lacks of s to the faces, v as a multiplier there)."""


class Fixed(Face):
    """s = 0 where ``active``, and v = 0 elsewhere."""

    def __init__(self, active: NDArray[np.bool_]) -> None:
        self.active = active
        self.matrix = np.eye(active.shape[1]) * active[:, :, None]
        self.held = np.where(active, 0.0, 1.0)

    def met(self, s: Array, v: Array) -> tuple[Array, Array]:
        return np.where(self.active, s, 0.0), np.where(self.active, v, 0.0)


@dataclass(frozen=True)
class Cone(ABC):
    """A cone that slacks of an agent's own rows lie in.

    Parameters
    ----------
    size : int
        Number of entries, which are made of cones of dimension ``dim``.

    Examples
    --------
    >>> import ccmac
    >>> isinstance(ccmac.cones.SecondOrder(3), ccmac.cones.Cone)
    True
    """

    kind: ClassVar[str]  # in files
    degree: ClassVar[int] = 1  # barrier parameter of each of the cones it is made of: e'e
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(f"{type(self).__name__}, size", self.size, 1))

    @property
    def dim(self) -> int:
        """Entries of each of the cones it is made of."""
        return 1

    @abstractmethod
    def identity(self, count: int, dim: int) -> Array:
        """e in every row."""

    @abstractmethod
    def margin(self, s: Array) -> Array:
        """The largest t with s - t e in K, row by row."""

    @abstractmethod
    def length(self, s: Array, step: Array) -> float:
        """The largest multiple of ``step`` that keeps all rows of s in K."""

    @abstractmethod
    def scaling(self, s: Array, v: Array) -> Scaling:
        """The Nesterov-Todd scaling at s and v inside K."""

    @abstractmethod
    def face(self, s: Array, v: Array, s0: Array, v0: Array) -> Face:
        """The faces that s and v near a solution tell of: whichever is less of s0 or v0."""

    @abstractmethod
    def product(self, a: Array, b: Array) -> Array:
        """a o b."""

    @abstractmethod
    def division(self, a: Array, b: Array) -> Array:
        """x with a o x = b."""
