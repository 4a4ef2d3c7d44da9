"""Agents and the problem they share."""

from ccmac.problem.base import CONIC, LIMITS, MATRICES, RIGHT_HAND_SIDES, Agent, Problem, has

__all__ = ["CONIC", "LIMITS", "MATRICES", "RIGHT_HAND_SIDES", "Agent", "Problem", "has"]
