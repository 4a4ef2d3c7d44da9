"""Who owns which agents, and how they talk: neighbor rounds, exact averages, scalar sums."""

from ccmac.runtime.base import InProcess, Runtime

__all__ = ["InProcess", "Runtime"]
