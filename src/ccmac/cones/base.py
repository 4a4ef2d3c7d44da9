"""What an interior-point method asks of a cone: scaling, product, division, step length, margin.

A cone K is self-dual here, with a Jordan product a o b and its identity e. For s and v inside K the
Nesterov-Todd scaling is the symmetric W with W v = W^{-1} s =: point. All functions act on a batch:
arrays of shape (count, dim), a row for each of ``count`` cones of one kind and one dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ccmac.inputs import Array, whole


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
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(f"{type(self).__name__}, size", self.size, 1))

    @property
    def dim(self) -> int:
        """Entries of each of the cones it is made of."""
        return 1

    @property
    def degree(self) -> int:
        """Barrier parameter of each of them: e'e."""
        return 1

    @staticmethod
    @abstractmethod
    def identity(count: int, dim: int) -> Array:
        """e in every row."""

    @staticmethod
    @abstractmethod
    def margin(s: Array) -> Array:
        """The largest t with s - t e in K, row by row."""

    @staticmethod
    @abstractmethod
    def dual_margin(v: Array) -> Array:
        """The same for the dual cone."""

    @staticmethod
    @abstractmethod
    def length(s: Array, step: Array) -> float:
        """The largest multiple of ``step`` that keeps all rows of s in K."""

    @staticmethod
    @abstractmethod
    def scaling(s: Array, v: Array) -> Scaling:
        """The Nesterov-Todd scaling at s and v inside K."""

    @staticmethod
    @abstractmethod
    def product(a: Array, b: Array) -> Array:
        """a o b."""

    @staticmethod
    @abstractmethod
    def division(a: Array, b: Array) -> Array:
        """x with a o x = b."""
