"""Decentralized convex optimization with cross-coupled mixed affine constraints."""

from ccmac import objectives
from ccmac.network import Network
from ccmac.problem import Agent, Problem

__all__ = ["Agent", "Network", "Problem", "objectives"]
