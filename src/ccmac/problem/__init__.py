"""Agents and the problem they share."""

from ccmac.problem.agent import LIMITS, MATRICES, RIGHT_HAND_SIDES, Agent, has
from ccmac.problem.base import Problem

__all__ = ["LIMITS", "MATRICES", "RIGHT_HAND_SIDES", "Agent", "Problem", "has"]
