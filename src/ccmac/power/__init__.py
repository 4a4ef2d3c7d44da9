"""Power grids: DC optimal power flow by buses or areas, over hours, with reserve and storage."""

from ccmac.power.case import DAY, Dispatch, dc_opf
from ccmac.power.rolling import rolling
from ccmac.power.tables import CASES

__all__ = ["CASES", "DAY", "Dispatch", "dc_opf", "rolling"]
