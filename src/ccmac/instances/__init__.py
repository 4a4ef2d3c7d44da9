"""Problems to learn from, to test with and to measure against."""

from ccmac.instances.base import HardInstance, Instance, frontier
from ccmac.instances.calibration import calibration
from ccmac.instances.dispatch import dispatch
from ccmac.instances.infeasible import infeasible
from ccmac.instances.matching_path import matching_path
from ccmac.instances.physical_path import physical_path, radius_explicit_rounds
from ccmac.instances.random_quadratic import random_quadratic
from ccmac.instances.reference import KKTSolution, infeasibility, solve_kkt
from ccmac.instances.reflected_chain import (
    bounded_angle,
    communication_path,
    complete_six,
    six_block,
    virtual_path,
)
from ccmac.instances.two_agent import two_agent, two_rows

__all__ = [
    "HardInstance",
    "Instance",
    "KKTSolution",
    "bounded_angle",
    "calibration",
    "communication_path",
    "complete_six",
    "dispatch",
    "frontier",
    "infeasibility",
    "infeasible",
    "matching_path",
    "physical_path",
    "radius_explicit_rounds",
    "random_quadratic",
    "six_block",
    "solve_kkt",
    "two_agent",
    "two_rows",
    "virtual_path",
]
