"""What ``ccmac.geometry`` returns: the numbers, and the words for them."""

from __future__ import annotations

import html
import math
import textwrap
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac import show
from ccmac.angles.principal import Angles, PairGeometry
from ccmac.angles.structural import Structural
from ccmac.inputs import Array
from ccmac.linalg.tolerances import ORTHOGONAL, RANK

WIDTH = 78


@dataclass(frozen=True, eq=False)
class Geometry:
    """How the channels' row spaces lie to each other.

    For two channels ``cross_factor`` is chi = sqrt((1+c_F)/(1-c_F)), exact common directions
    removed; for three or more, where pairs do not decide, it is ``multi_channel_factor`` and
    ``friedrichs_cosine`` is the largest of the ``pairwise`` ones. ``ranks`` are the channels' ranks
    (None where not computed). ``agents`` is each agent's part in the worst direction: its share of
    sum_i ||(B_i - mean B)' h||^2 plus D's part ``shared``. ``residual`` bounds the error of c_F^2
    when an iteration found it (0: direct). ``rests_on`` is "computed", or "probable": chi then lies
    in ``interval`` but for one random start in a million.

    Parameters
    ----------
    friedrichs_cosine, friedrichs_angle : float
        c_F and its angle in radians.
    cross_factor : float
        chi = sqrt((1 + c_F)/(1 - c_F)).
    multi_channel_factor : float, optional
        The same for three or more channels.
    common_dimension : int, optional
        The number of common directions, which are left out.
    ranks : tuple
        Of the channels.
    principal_angles : ndarray
        In radians.
    method : str
        How it was computed.
    tolerance, rank_tolerance : float
        Below which angles are zero, and rows dependent.
    structural : Structural, optional
        Constants of the normalization.
    agents : tuple of float
        Each agent's part in the worst direction.
    shared : float
        The part of the shared equations D in it.
    rebalanced_cross_factor : float, optional
        chi if all B_i were equal.
    pairwise : ndarray, optional
        Cosines of pairs of channels.
    residual : float
        Bounds the error of c_F^2 where an iteration found it.
    interval : tuple of float, optional
        Where chi lies, where it is only probable.
    rests_on : {"computed", "probable"}
        On what the numbers rest.
    notes : tuple of str
        Remarks.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> ccmac.geometry(problem)
    Geometry(chi=1)
    """

    friedrichs_cosine: float
    friedrichs_angle: float
    cross_factor: float
    multi_channel_factor: float | None
    common_dimension: int | None
    ranks: tuple[int | None, ...]
    principal_angles: Array
    method: str
    tolerance: float
    rank_tolerance: float
    structural: Structural | None = None
    agents: tuple[float, ...] = ()
    shared: float = 0.0
    rebalanced_cross_factor: float | None = None
    pairwise: Array | None = None
    residual: float = 0.0
    interval: tuple[float, float] | None = None
    rests_on: str = "computed"
    notes: tuple[str, ...] = ()

    @property
    def advice(self) -> tuple[str, ...]:
        """What the numbers mean for a solver and what would help, one sentence or two each."""
        return (*_meaning(self), *_remedy(self), *self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "notes"}
        return found | {
            "ranks": list(self.ranks),
            "principal_angles": self.principal_angles.tolist(),
            "agents": list(self.agents),
            "pairwise": None if self.pairwise is None else self.pairwise.tolist(),
            "structural": None if self.structural is None else asdict(self.structural),
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        theta = self.friedrichs_angle
        degrees = f"{math.degrees(theta):.4g} degrees"
        lines = [
            "Geometry of the constraint channels",
            _row("cross factor chi", _number(self.cross_factor), _verdict(self.cross_factor)),
            _row("Friedrichs cosine", _number(self.friedrichs_cosine)),
            _row("Friedrichs angle", f"{theta:.6g} rad = {degrees}"),
            _row("common directions", _number(self.common_dimension)),
            _row("channel ranks", ", ".join(_number(r) for r in self.ranks) or "no channels"),
            _row("multi-channel factor", _number(self.multi_channel_factor)),
            _row("method", self.method, f"angles below {self.tolerance:.1e} rad are common"),
        ]
        if self.rests_on == "probable" and self.interval is not None:
            low, high = map(_number, self.interval)
            lines.append(_row("chi lies in", f"[{low}, {high}]", self.rests_on))
        if self.residual:
            lines.append(_row("residual of c_F^2", f"{self.residual:.1e}"))
        if self.structural is not None:
            lines += _structural_rows(self.structural)
        if self.agents and self.friedrichs_cosine > 0:
            lines += _agent_rows(self)
        for sentence in self.advice:
            lines += ["", *textwrap.wrap(sentence, WIDTH)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Geometry(chi={_number(self.cross_factor)})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the angle between the channels and each agent's part; returns the axes."""
        return show.draw_geometry(self, ax)


def pair_fields(
    pair: PairGeometry, angles: Angles, *, method: str, tolerance: float
) -> dict[str, Any]:
    """The fields of a Geometry that two row spaces decide."""
    return {
        "friedrichs_cosine": pair.cosine,
        "friedrichs_angle": pair.angle,
        "cross_factor": pair.cross_factor,
        "multi_channel_factor": pair.multi_channel_factor,
        "common_dimension": pair.common,
        "principal_angles": angles.radians,
        "method": method,
        "tolerance": tolerance,
        "rank_tolerance": RANK,
    }


def _meaning(geometry: Geometry) -> list[str]:
    chi = geometry.cross_factor
    if chi <= 1.0 + ORTHOGONAL:
        apart = "normalized separately, they cost no more together than apart."
        return [f"The channels are orthogonal: {apart}"]
    return [
        f"Normalized separately, the channels together have condition chi^2 = {chi * chi:.4g}; an "
        f"accelerated method needs about chi = {chi:.4g} times the affine calls of orthogonal "
        "channels, and no processing inside the channels can lower this."
    ]


def _remedy(geometry: Geometry) -> list[str]:
    chi = geometry.cross_factor
    better = geometry.rebalanced_cross_factor
    if better is None or chi <= 1.0 + ORTHOGONAL:
        return []
    if better > 0.99 * chi:
        return [
            "Rebalancing the B_i would not help: the overlap comes from the shared equations D_i "
            "z = e_i."
        ]
    worst = _most_first(geometry)
    named = [int(i) for i in worst[:3] if geometry.agents[i] > 0.5 / max(len(geometry.agents), 1)]
    who = ", ".join(f"agent {i} ({geometry.agents[i]:.0%})" for i in named) or "all agents alike"
    return [
        f"The near-overlap comes from B_i that differ from their mean, most at {who}. Giving every "
        "agent the mean of the B_i (problem.rebalanced()) keeps the solutions and brings chi to "
        f"{better:.4g}; the agents must be allowed to learn that mean."
    ]


def _structural_rows(s: Structural) -> list[str]:
    rows = [
        _row("coupled rows k_1", _number(s.k_1), f"h {_number(s.h)}, mu_HC {_number(s.mu_HC)}"),
        _row("shared rows k_2", _number(s.k_2), f"d_D {_number(s.d_D)}, mu_D {_number(s.mu_D)}"),
        _row("local rows kappa_C", _number(s.kappa_C)),
    ]
    if s.kappa_W is not None:
        rows.append(_row("network kappa_W", _number(s.kappa_W)))
    if s.estimated:
        rows.append(_row("estimated", ", ".join(s.estimated)))
    return rows


def _agent_rows(geometry: Geometry) -> list[str]:
    order = _most_first(geometry)[:5]
    shares = ", ".join(f"{int(i)}: {geometry.agents[i]:.1%}" for i in order)
    more = "" if len(geometry.agents) <= 5 else ", ..."
    rows = [_row("worst direction", f"agents {shares}{more}")]
    if geometry.shared > 0:
        rows.append(_row("", f"shared equations D: {geometry.shared:.1%}"))
    return rows


def _most_first(geometry: Geometry) -> NDArray[np.int64]:
    """Agents by their share; equal ones, rounding apart, in their own order."""
    return np.argsort(-np.round(geometry.agents, 9), kind="stable")


def _row(name: str, value: str, remark: str = "") -> str:
    whole = value + (f"  ({remark})" if remark else "")
    lines = textwrap.wrap(whole, WIDTH - 24) or [""]
    return "\n".join(
        f"  {head:<22}{line}" for head, line in zip([name, *[""] * len(lines)], lines, strict=False)
    )


def _number(value: float | None) -> str:
    if value is None:
        return "not computed"
    if isinstance(value, int):
        return str(value)
    return f"{value:.6g}" if math.isfinite(value) else "infinite"


def _verdict(chi: float) -> str:
    bounds = [(1.0 + ORTHOGONAL, "orthogonal"), (1.5, "mild"), (5.0, "noticeable"), (50.0, "hard")]
    return next((word for bound, word in bounds if chi <= bound), "very hard")
