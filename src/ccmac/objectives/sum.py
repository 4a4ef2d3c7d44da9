"""Sums of functions of one vector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse
from ccmac.objectives.basic import Box
from ccmac.objectives.function import Function, Step
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.objectives.quadratic import Quadratic


class Sum(Function):
    """g_1(v) + ... + g_k(v); also written ``g_1 + g_2``.

    L and mu are sums of the parts' constants: exact when at most one part is not a squared
    distance or when all are quadratic (then from the summed Hessian), else safe bounds.

    The prox is offered where it has a closed form: squared distances merge with the proximal term
    itself and leave the prox of one other part at a shifted point with a shorter step; a box on
    top of a coordinatewise part clips that prox; quadratics add up to one quadratic.
    """

    def __init__(self, *parts: Function) -> None:
        flat: list[Function] = []
        for part in parts:
            if not isinstance(part, Function):
                raise InputError(
                    f"Sum: {type(part).__name__} is not a function of one vector; "
                    "add such terms inside Separable or write them into Custom"
                )
            flat.extend(part.parts if isinstance(part, Sum) else [part])
        if not flat:
            raise InputError("Sum: has no parts; give at least one function")
        self.parts: tuple[Function, ...] = tuple(flat)
        sizes = {part.size for part in flat} - {None}
        if len(sizes) > 1:
            raise InputError(f"Sum: the parts act on different lengths {sorted(map(str, sizes))}")
        self._size = next(iter(sizes), None)
        self.coordinatewise = all(part.coordinatewise for part in flat)
        self._plain = [known for part in flat if (known := part.isotropic()) is not None]
        self._boxes = [part for part in flat if isinstance(part, Box)]
        self._others = [p for p in flat if p.isotropic() is None and not isinstance(p, Box)]
        self.entrywise_steps = all(part.entrywise_steps for part in flat)
        self.capabilities = self._find_capabilities()

    def _find_capabilities(self) -> frozenset[str]:
        offered = [part.capabilities for part in self.parts]
        found: set[str] = set()
        if all("gradient" in c for c in offered):
            found.add("gradient")
        elif all(c & {"gradient", "subgradient"} for c in offered):
            found.add("subgradient")
        if all("quadratic" in c for c in offered):
            found |= {"quadratic", "prox"}
        elif (
            len(self._others) <= 1
            and all("prox" in c for c in offered)
            and (not self._boxes or all(part.coordinatewise for part in self._others))
        ):
            found.add("prox")
        if all(part.is_polyhedral for part in self.parts) and "quadratic" not in found:
            found.add("polyhedral")
        return frozenset(found)

    @property
    def size(self) -> int | None:
        """The length that some part fixes."""
        return self._size

    @cached_property
    def _merged(self) -> Quadratic | None:
        """All parts as one quadratic, when they are quadratic and not all squared distances."""
        if "quadratic" not in self.capabilities or not self._others or self._size is None:
            return None
        H, g, _ = self.quadratic_at(self._size)
        return Quadratic(H, g)

    def constants(self, size: int) -> tuple[float, float]:
        """Of the merged quadratic, else sums."""
        if self._merged is not None:
            return self._merged.constants(size)
        pairs = [part.constants(size) for part in self.parts]
        return math.fsum(L for L, _ in pairs), math.fsum(mu for _, mu in pairs)

    def value_at(self, v: Array) -> float:
        return float(sum(part.value_at(v) for part in self.parts))

    def gradient_at(self, v: Array) -> Array:
        total = np.array(self.parts[0].gradient_at(v))
        for part in self.parts[1:]:
            total += part.gradient_at(v)
        return total

    def prox_at(self, v: Array, step: Step) -> Array:
        """See the class: merge squared distances, then one prox, then the box."""
        if "prox" not in self.capabilities:
            return super().prox_at(v, step)
        if self._merged is not None:
            return self._merged.prox_at(v, step)
        total, shift = self._isotropic_sum()
        shrink = 1.0 + step * total
        point = (v if shift is None else v + step * shift) / shrink
        for part in self._others:
            point = part.prox_at(point, step / shrink)
        for box in self._boxes:
            point = box.prox_at(point, step)
        return point

    def _isotropic_sum(self) -> tuple[float, Array | None]:
        total, shift = 0.0, None
        for factor, moved in self._plain:
            total += factor
            if moved is not None:
                shift = moved if shift is None else shift + moved
        return total, shift

    def isotropic(self) -> tuple[float, Array | None] | None:
        """Known when it is for every part."""
        return None if len(self._plain) < len(self.parts) else self._isotropic_sum()

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """Sums of Hessians, linear terms and constants; sparse while every Hessian is."""
        forms = [part.quadratic_at(size) for part in self.parts]
        H: Any = forms[0][0]
        for other, _, _ in forms[1:]:
            H = _plus(H, other)
        return H, np.sum([g for _, g, _ in forms], axis=0), math.fsum(c for _, _, c in forms)

    def polyhedral_at(self, size: int) -> Polyhedral:
        """Sums of quadratics, all bounds, all terms."""
        forms = [part.polyhedral_at(size) for part in self.parts]
        return sum(forms[1:], forms[0])

    def lipschitz_at(self, size: int) -> float:
        return math.fsum(part.lipschitz_at(size) for part in self.parts)

    def state(self) -> Mapping[str, Any]:
        return {"parts": list(self.parts)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Sum:
        return cls(*state["parts"])


def _plus(H: Any, other: Any) -> Any:
    if is_sparse(H) and is_sparse(other):
        return sp.csr_array(H + other)
    return np.asarray(H + other)
