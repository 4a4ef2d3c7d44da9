"""Models written in CVXPY, kept with their owners (``pip install "ccmac[cvxpy]"``).

An owner states its own part, or a whole ``cp.Problem`` is divided. Either way ``ccmac.solve`` sets
``.value`` of variables and ``.dual_value`` of constraints.
"""

from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__ and not name.startswith("_"):
        from ccmac.texts import misnamed

        raise misnamed(__name__, name, __all__)
    try:
        return _attached(name)
    except ModuleNotFoundError as error:
        if error.name != "cvxpy":
            raise
        from ccmac.errors import InputError

        raise InputError("ccmac.cvx needs CVXPY; pip install 'ccmac[cvxpy]'") from None
