"""Models written in CVXPY, kept with their owners (``pip install "ccmac[cvxpy]"``).

An owner states its own part, or a whole ``cp.Problem`` is divided. Either way ``ccmac.solve`` sets
``.value`` of variables and ``.dual_value`` of constraints.
"""

from ccmac.lazy import attached

__getattr__, __dir__, __all__ = attached(
    __name__, __file__, "cvxpy", "CVXPY; pip install 'ccmac[cvxpy]'"
)
