from .between import party
from .classifiers import VerticalLogisticRegression, VerticalLogisticRegressionCV, VerticalSVC
from .formulation import VflProblem, problem
from .glm import VerticalGamma, VerticalInverseGaussian, VerticalPoisson, VerticalTweedie
from .labels import LOSSES
from .regressors import (
    VerticalElasticNet,
    VerticalHuber,
    VerticalLasso,
    VerticalQuantile,
    VerticalRidge,
)
from .shares import cross_factor_weights

__all__ = [
    "LOSSES",
    "VerticalElasticNet",
    "VerticalGamma",
    "VerticalHuber",
    "VerticalInverseGaussian",
    "VerticalLasso",
    "VerticalLogisticRegression",
    "VerticalLogisticRegressionCV",
    "VerticalPoisson",
    "VerticalQuantile",
    "VerticalRidge",
    "VerticalSVC",
    "VerticalTweedie",
    "VflProblem",
    "cross_factor_weights",
    "party",
    "problem",
]
