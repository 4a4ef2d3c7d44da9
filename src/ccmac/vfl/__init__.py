"""Vertical federated learning: one model of columns that different parties own.

The names are those of ``__init__.pyi``; each is imported when it is first used.
"""

from ccmac.lazy import attached

__getattr__, __dir__, __all__ = attached(
    __name__, __file__, "sklearn", "scikit-learn 1.6 or newer; pip install 'ccmac[vfl]'"
)
