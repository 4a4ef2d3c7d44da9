"""What is derived from a problem on a network, once: coupling, equations, curvature."""

from ccmac.workspace.base import Workspace

__all__ = ["Workspace"]
