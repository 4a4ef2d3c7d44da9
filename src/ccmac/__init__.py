"""Decentralized convex optimization with cross-coupled mixed affine constraints.

The names are those of ``__init__.pyi``; each is imported when it is first used.
"""

from ccmac.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)
