"""Labels of any kind, turned into what a loss takes: numbers, signs or classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import LARGEST, Array, as_array
from ccmac.texts import nearest, shown

MARGINS = ("logistic", "hinge")
CLASSES = (*MARGINS, "multinomial")
POWERS = {"poisson": 1.0, "gamma": 2.0, "inverse-gaussian": 3.0}  # of the variance
DEVIANCES = (*POWERS, "tweedie")
LOSSES = ("squared", "huber", "absolute", "quantile", *CLASSES, *DEVIANCES)
LISTED = 4
OTHERS = (str, bytes, np.timedelta64, np.datetime64)
"""Of single values: what NumPy, by its version, turns into numbers though it is none."""


def known(loss: Any) -> None:
    """Refuse what is none of :data:`LOSSES`."""
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"vfl: loss {shown(loss)} is unknown; {nearest(loss, LOSSES)}")


def encoded(loss: str, y: Any, keys: Any = None) -> tuple[Array, tuple[Any, ...]]:
    """(numbers, -1 and +1, or classes 0, 1, ...; the classes in their order, or none)."""
    known(loss)
    values = as_array("vfl: y", y)
    if values.ndim != 1:
        raise InputError(f"vfl: y has shape {values.shape}; bad input shape, give one label a row")
    if loss not in CLASSES:
        return numbers("y", values, keys), ()
    return classified(loss, values, keys)


def numbers(name: str, values: Any, keys: Any = None) -> Array:
    """Finite numbers, or the row that holds none."""
    remedy = "unknown label type for this loss; use loss='logistic' for classes, or encode it"
    out = floats(f"vfl: {name}", as_array(f"vfl: {name}", values), remedy)
    bad = np.flatnonzero(~(np.abs(out) <= LARGEST))
    if len(bad):
        row = int(bad[0]) if keys is None else keys[bad[0] : bad[0] + 1].tolist()[0]
        kind = unusable(out[bad[0]])
        raise InputError(f"vfl: {name} has {kind} in row {shown(row)}; fill or drop it")
    return out


def floats(where: str, values: NDArray[Any], remedy: str) -> Array:
    """A column of numbers; NumPy may turn texts and spans of time into some, but they are none."""
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind in "mM":
        raise InputError(f"{where} holds dates or times; turn them into numbers first")
    if values.dtype.kind == "c":
        raise InputError(f"{where} Complex data not supported; give real numbers")
    listed = values.ravel().tolist()
    try:
        if any(isinstance(v, OTHERS) for v in listed):
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise InputError(f"{where} holds a whole number that no float can hold") from None
    except Exception:  # an object of another library may raise anything here
        found = [v for v in listed if not isinstance(v, int | float)] or listed
        first = next((v for v in found if not _numeral(v)), found[0])
        raise InputError(f"{where} holds {shown(first)}, which is no number; {remedy}") from None


def _numeral(value: Any) -> bool:
    """A number, but written as text: not what spoilt the column."""
    try:
        return isinstance(value, str | bytes) and math.isfinite(float(value))
    except ValueError:
        return False


def unusable(value: float) -> str:
    """What is wrong with a number that cannot be learned from."""
    if np.isnan(value):
        return "NaN (a missing value)"
    return "infinity (inf)" if np.isinf(value) else f"a number beyond {LARGEST:g}"


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for them."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 (NaN alone is not itself)
    except TypeError:  # pandas.NA
        return True


def classified(loss: str, values: Any, keys: Any = None) -> tuple[Array, tuple[Any, ...]]:
    """Classes in sorted order; two of them for the losses of a margin."""
    lost = [is_missing(v) for v in values.tolist()]
    if any(lost):
        first = lost.index(True)
        row = first if keys is None else np.asarray(keys).tolist()[first]
        raise InputError(f"vfl: y has NaN (a missing label) in row {shown(row)}; fill or drop it")
    if values.dtype.kind in "mM":
        raise InputError("vfl: y holds dates or times; turn them into text or numbers first")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError("vfl: y has infinity (inf) among its labels; clean them")
    broken = values[values != np.floor(values)] if values.dtype.kind == "f" else values[:0]
    if len(broken):
        raise InputError(
            f"vfl: Unknown label type: y has fractions such as {shown(float(broken[0]))}; "
            f"loss {loss!r} takes classes, loss 'squared' numbers"
        )
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values.tolist()})
        raise InputError(f"vfl: y mixes labels of types {', '.join(kinds)}; use one") from None
    listed = ", ".join(shown(c) for c in classes[:LISTED].tolist())
    if len(classes) < 2:
        raise InputError(f"vfl: y has one class only ({listed}); a classifier needs two")
    if loss in MARGINS:
        if len(classes) > 2:
            raise InputError(
                f"vfl: y has {len(classes)} classes ({listed}, ...) but loss {loss!r} takes two; "
                "use loss='multinomial'"
            )
        return np.where(codes > 0, 1.0, -1.0), tuple(classes.tolist())
    return codes.astype(np.float64), tuple(classes.tolist())
