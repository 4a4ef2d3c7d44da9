"""One run of a suite: everything that determines its outcome, and the name made from that."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any

import msgspec

from ccmac.network import FAMILIES


@dataclass(frozen=True)
class SuiteRun:
    """Problem, network, method and stopping rule, all of plain values.

    ``problem`` are keyword arguments of :func:`ccmac.vfl.problem`, ``options`` of
    the method; ``stop`` is ``reference`` (RelErr of the weights) or ``certificate``.
    """

    suite: str
    profile: str
    data: str
    agents: Annotated[int, msgspec.Meta(ge=1)]
    partition_seed: int
    alpha: dict[str, float] | str | None
    network: dict[str, Any]
    method: str
    label: str
    tol: Annotated[float, msgspec.Meta(ge=1e-100)]
    stop: str = "reference"
    problem: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_iterations: int | None = None
    max_seconds: float | None = None

    @cached_property
    def id(self) -> str:
        """Readable words and a digest of the content: equal runs have equal names."""
        words = (self.data, f"n{self.agents}", network_name(self.network), self.label)
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-").lower()
        # The version of the record format is part of every run's name.
        return f"{slug[:60]}-{digest({'format': 1, **self.as_dict()})}"

    @cached_property
    def solve_key(self) -> str:
        """Equal for runs with the same iterates.

        The canonical realization does not look at the graph (Proposition prop:lift-invariance):
        only the modelled rounds of a call depend on it, so one solve serves all graphs.
        """
        content = self.as_dict()
        if self.graph_free:
            content["network"] = "any"
        return digest(content)

    @property
    def graph_free(self) -> bool:
        """Whether the iterates are the same on every graph."""
        return self.options.get("realization") == "canonical"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SuiteRun:
        """Inverse of :meth:`as_dict`; content that is none raises ValueError or KeyError."""
        run = msgspec.convert(content, cls)
        if str(run.network["family"]) not in FAMILIES or not network_name(run.network):
            raise ValueError("the network is of no known family")
        alpha_name(run.alpha)
        return run


def digest(content: dict[str, Any]) -> str:
    """Twelve hexadecimal digits of the SHA-256 of the canonical JSON text."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def alpha_name(alpha: dict[str, float] | str | None) -> str:
    """``uniform``, ``feature-norm`` or ``chi = 3``."""
    if alpha is None:
        return "uniform"
    return f"chi = {alpha['cross_factor']:g}" if isinstance(alpha, dict) else alpha


def network_name(network: dict[str, Any]) -> str:
    """``ring``, ``grid-2x4``, ``erdos_renyi-3`` ..."""
    family = str(network["family"])
    if family == "grid":
        return f"grid-{network['rows']}x{network['cols']}"
    return f"{family}-{network['seed']}" if "seed" in network else family
