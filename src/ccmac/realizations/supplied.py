"""Spectral certificates a user may supply (Assumption spectral-certificates); any subset.

What is missing is estimated by Lanczos with a margin and charged to ``setup``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.errors import InputError


@dataclass(frozen=True)
class Certificates:
    """Bounds on the structural parameters of the normalization appendix.

    spec(S_HC) in {0} u [mu_HC, h], ||H||^2 <= h;  spec(S_D) in {0} u [mu_D, d_D];
    spec(CC') in {0} u [l_C, u_C];  spec(W) in {0} u [l_W, u_W];  cross_factor >= chi;
    energy_radius R_E bounds the initial APAPC energy and gives the a-priori horizon.
    """

    h: float | None = None
    mu_HC: float | None = None
    d_D: float | None = None
    mu_D: float | None = None
    l_C: float | None = None
    u_C: float | None = None
    l_W: float | None = None
    u_W: float | None = None
    cross_factor: float | None = None
    energy_radius: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (
                isinstance(value, int | float) and 0 < value < float("inf")
            ):
                raise InputError(f"certificates: {name} = {value!r} must be a positive number")
        for low, high in (("mu_HC", "h"), ("mu_D", "d_D"), ("l_C", "u_C"), ("l_W", "u_W")):
            a, b = getattr(self, low), getattr(self, high)
            if a is not None and b is not None and a > b:
                raise InputError(f"certificates: {low} = {a} is larger than {high} = {b}")
        if self.cross_factor is not None and self.cross_factor < 1:
            raise InputError(f"certificates: cross_factor = {self.cross_factor} is below 1")

    @property
    def of_own_rows(self) -> bool:
        """Whether something is said of the C_i or D_i: their rows then stay as they are."""
        return any(v is not None for v in (self.l_C, self.u_C, self.d_D, self.mu_D))
