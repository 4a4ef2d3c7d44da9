"""Power grids by buses or areas: DC dispatch over hours, with reserve and storage; relaxed AC."""

from typing import Any

from ccmac.power.ac import AcDispatch, ac_opf
from ccmac.power.area import Area, area
from ccmac.power.case import DAY, Dispatch, dc_opf
from ccmac.power.rolling import rolling
from ccmac.power.tables import CASES
from ccmac.texts import misnamed

__all__ = ["CASES", "DAY", "AcDispatch", "Area", "Dispatch", "ac_opf", "area", "dc_opf", "rolling"]


def __getattr__(name: str) -> Any:
    raise misnamed(__name__, name, __all__)
