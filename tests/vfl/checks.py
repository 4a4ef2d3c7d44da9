"""scikit-learn's own checks of the six estimators.

    python tests/vfl/checks.py [VerticalSVC ...]

runs all of them (a minute or two) and ends with 1 if one fails that is not INAPPLICABLE. The test
suite runs those of VerticalRidge in full, and for the others those that are QUICK.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

from sklearn.utils.estimator_checks import estimator_checks_generator

from ccmac.vfl import (
    VerticalElasticNet,
    VerticalHuber,
    VerticalLasso,
    VerticalLogisticRegression,
    VerticalRidge,
    VerticalSVC,
)

# Weights of rows are compared with repeated rows to 1e-7: tighter than what a default proves.
# Some of the data are fitted exactly; VerticalHuber's default penalty is too small for 1e-7 there.
ESTIMATORS: dict[str, Any] = {
    type(e).__name__: e
    for e in (
        VerticalRidge(tol=1e-10),
        VerticalLasso(tol=1e-12),
        VerticalElasticNet(tol=1e-12),
        VerticalLogisticRegression(),
        VerticalSVC(tol=1e-9),
        VerticalHuber(alpha=10.0),
    )
}
INAPPLICABLE = {
    "check_dtype_object": "asks for a TypeError; ours is a ValueError that names party and column",
    "check_array_api_input": "SCIPY_ARRAY_API is not set; tables are read by NumPy and SciPy",
}

QUICK = frozenset(
    f"check_{name}"
    for name in (
        "complex_data",
        "classifiers_one_label",
        "classifiers_regression_target",
        "dict_unchanged",
        "dont_overwrite_parameters",
        "estimator_cloneable",
        "estimators_empty_data_messages",
        "estimators_nan_inf",
        "estimators_overwrite_params",
        "estimators_pickle",
        "fit1d",
        "fit2d_1feature",
        "fit2d_1sample",
        "fit_score_takes_y",
        "get_params_invariance",
        "n_features_in_after_fitting",
        "no_attributes_set_in_init",
        "parameters_default_constructible",
        "regressor_data_not_an_array",
        "regressors_int",
        "regressors_no_decision_function",
        "requires_y_none",
        "sample_weights_list",
        "sample_weights_not_an_array",
        "sample_weights_shape",
        "set_params",
        "supervised_y_no_nan",
    )
)


def name_of(check: Any) -> str:
    return str(check.func.__name__)


def outcomes(estimator: Any, chosen: Any = lambda name: True) -> dict[str, str]:
    """What each chosen check says: "" where it passes."""
    found: dict[str, str] = {}
    for candidate, check in estimator_checks_generator(estimator, legacy=True):
        name = name_of(check)
        if name in INAPPLICABLE or not chosen(name):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(candidate)
                found.setdefault(name, "")
            except Exception as error:  # a check fails by any of them
                found[name] = f"{type(error).__name__}: {error}"
    return found


def main(names: list[str]) -> int:
    bad = 0
    for name in names or ESTIMATORS:
        begun = time.process_time()
        found = outcomes(ESTIMATORS[name])
        failed = {check: text for check, text in found.items() if text}
        bad += len(failed)
        spent = time.process_time() - begun
        left_out = ", ".join(INAPPLICABLE)
        passed = f"{len(found) - len(failed)} of {len(found)}"
        print(f"{name}: {passed}, {spent:.0f} CPU s; not applicable: {left_out}", flush=True)
        for check, text in failed.items():
            print(f"  {check}: {text[:300]}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
