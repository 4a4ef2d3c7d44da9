"""Problems to learn from, to test with and to measure against."""

from ccmac.instances.infeasible import infeasible
from ccmac.instances.random_quadratic import random_quadratic
from ccmac.instances.reference import KKTSolution, infeasibility, solve_kkt

__all__ = ["KKTSolution", "infeasibility", "infeasible", "random_quadratic", "solve_kkt"]
