"""Agents and the problem they share."""

from ccmac.problem.agent import CONIC, LIMITS, MATRICES, RIGHT_HAND_SIDES, Agent, has
from ccmac.problem.base import Problem

__all__ = ["CONIC", "LIMITS", "MATRICES", "RIGHT_HAND_SIDES", "Agent", "Problem", "has"]
