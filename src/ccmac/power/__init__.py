"""Power grids: DC optimal power flow by buses or areas, over hours, with reserve and storage."""

from typing import Any

from ccmac.power.case import DAY, Dispatch, dc_opf
from ccmac.power.rolling import rolling
from ccmac.power.tables import CASES
from ccmac.texts import misnamed

__all__ = ["CASES", "DAY", "Dispatch", "dc_opf", "rolling"]


def __getattr__(name: str) -> Any:
    raise misnamed(__name__, name, __all__)
