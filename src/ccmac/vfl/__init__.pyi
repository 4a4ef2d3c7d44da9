from .between import party
from .classifiers import VerticalLogisticRegression, VerticalSVC
from .formulation import VflProblem, problem
from .labels import LOSSES
from .regressors import VerticalElasticNet, VerticalHuber, VerticalLasso, VerticalRidge
from .shares import cross_factor_weights

__all__ = [
    "LOSSES",
    "VerticalElasticNet",
    "VerticalHuber",
    "VerticalLasso",
    "VerticalLogisticRegression",
    "VerticalRidge",
    "VerticalSVC",
    "VflProblem",
    "cross_factor_weights",
    "party",
    "problem",
]
