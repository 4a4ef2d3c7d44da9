"""Problems to learn from, to test with and to measure against."""

from ccmac.lab.instances.base import HardInstance, Instance, frontier
from ccmac.lab.instances.calibration import calibration
from ccmac.lab.instances.dispatch import dispatch
from ccmac.lab.instances.infeasible import infeasible
from ccmac.lab.instances.matching_path import matching_path
from ccmac.lab.instances.physical_path import physical_path, radius_explicit_rounds
from ccmac.lab.instances.random_quadratic import random_quadratic
from ccmac.lab.instances.reference import KKTSolution, infeasibility, solve_kkt
from ccmac.lab.instances.reflected_chain import (
    bounded_angle,
    communication_path,
    complete_six,
    six_block,
    virtual_path,
)
from ccmac.lab.instances.two_agent import two_agent, two_rows

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
