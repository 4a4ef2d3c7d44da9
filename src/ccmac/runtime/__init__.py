"""Who owns which agents, and how they talk: neighbor rounds, exact averages, scalar sums."""

from ccmac.runtime.base import Runtime
from ccmac.runtime.inprocess import InProcess

__all__ = ["InProcess", "Runtime"]
