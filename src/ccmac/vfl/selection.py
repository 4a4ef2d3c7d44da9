"""How good scores of rows are that a fit has not seen: for penalties chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ccmac.errors import InputError, needed
from ccmac.inputs import Array, whole
from ccmac.vfl.labels import DEVIANCES, POWERS

TENTHS = 10


def folds(rows: int, count: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows of the fit, rows left out), every ``count``-th row at a time."""
    if not 2 <= whole("vfl: folds", count, 1) <= rows:
        raise InputError(
            f"vfl: folds = {count} of {rows} rows; take at least 2, at most a row each"
        )
    place = np.arange(rows)
    for k in range(count):
        yield place[place % count != k], place[place % count == k]


def derived(loss: str, scores: Array) -> dict[str, Array]:
    """What scores stand for: probabilities of classes, or means of a logarithmic link."""
    if loss == "logistic":
        return {"probability": expit(scores[:, 0])}
    if loss == "multinomial":
        return {f"probability_{j}": p for j, p in enumerate(softmax(scores, axis=1).T)}
    if loss in DEVIANCES:
        return {"mean": np.exp(scores[:, 0])}
    return {}


def judged(
    loss: str, y: Array, scores: Array, *, power: float = 1.5, quantile: float = 0.5
) -> dict[str, float]:
    """What is to be as small as possible comes first; labels y as a loss takes them."""
    hint = "vfl: choosing a penalty needs scikit-learn; pip install 'ccmac[vfl]'"
    metrics = needed("sklearn.metrics", hint)
    if loss == "multinomial":
        p = softmax(scores, axis=1)
        names = list(range(p.shape[1]))
        right = float(np.mean(p.argmax(axis=1) == y))
        return {"log_loss": float(metrics.log_loss(y, p, labels=names)), "accuracy": right}
    score = scores[:, 0]
    if loss == "logistic":
        p = expit(score)
        return {
            "log_loss": float(np.mean(np.logaddexp(0.0, -y * score))),
            "auc": float(metrics.roc_auc_score(y, score)),
            "accuracy": float(np.mean((score > 0) == (y > 0))),
            "calibration_error": calibration_error(y > 0, p),
        }
    if loss == "hinge":
        auc = float(metrics.roc_auc_score(y, score))
        return {"error": float(np.mean((score > 0) != (y > 0))), "auc": auc}
    if loss in DEVIANCES:
        power = POWERS.get(loss, power)
        found = metrics.mean_tweedie_deviance(y, np.exp(score), power=power)
        return {"deviance": float(found)}
    if loss == "quantile":
        return {"pinball": float(metrics.mean_pinball_loss(y, score, alpha=quantile))}
    squared = float(np.mean((y - score) ** 2))
    absolute = float(np.mean(np.abs(y - score)))
    first = {"mean_squared_error": squared, "mean_absolute_error": absolute}
    return first | {"r2": float(metrics.r2_score(y, score))}


def calibration_error(y: Any, p: Array) -> float:
    """Mean distance of tenths' mean probabilities from their shares of the class."""
    tenth = np.minimum((p * TENTHS).astype(int), TENTHS - 1)
    gaps = np.bincount(tenth, weights=p - y, minlength=TENTHS)
    return float(np.abs(gaps).sum() / len(p))
