"""Problems to learn from, to test with and to measure against."""

from ccmac.paper.instances.base import HardInstance, Instance
from ccmac.paper.instances.examples import calibration, dispatch, two_agent, two_rows
from ccmac.paper.instances.kinks import max_of_coordinates
from ccmac.paper.instances.physical_path import physical_path, radius_explicit_rounds
from ccmac.paper.instances.random_quadratic import infeasible, random_quadratic
from ccmac.paper.instances.reference import KKTSolution, infeasibility, solve_kkt
from ccmac.paper.instances.reflected_chain import (
    bounded_angle,
    communication_path,
    complete_six,
    matching_path,
    six_block,
    uniform_rounds,
    virtual_path,
)

__all__ = [
    "HardInstance",
    "Instance",
    "KKTSolution",
    "bounded_angle",
    "calibration",
    "communication_path",
    "complete_six",
    "dispatch",
    "infeasibility",
    "infeasible",
    "matching_path",
    "max_of_coordinates",
    "physical_path",
    "radius_explicit_rounds",
    "random_quadratic",
    "six_block",
    "solve_kkt",
    "two_agent",
    "two_rows",
    "uniform_rounds",
    "virtual_path",
]
