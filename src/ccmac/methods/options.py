"""Options of methods: typed, documented, and refused by name before any work.

An option is a field of a method's frozen dataclass, made by :func:`option`. The strings of the
command line, of suites and of ``method="cross-apapc"`` become such a dataclass in :func:`built`;
:func:`check` runs when one is made, however that happens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from ccmac.errors import InputError
from ccmac.inputs import LARGEST
from ccmac.texts import nearest, shown

M = TypeVar("M")
MOST = 1_000_000  # of steps, vectors and degrees: beyond, a typing mistake


@dataclass(frozen=True)
class Option:
    """What an option means, its kind, its choices, and the realizations it belongs to (all: ()).

    Numbers lie ``below`` a limit.
    """

    doc: str
    kind: type
    choices: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    below: float = math.inf


def option(
    default: Any,
    kind: type,
    doc: str,
    *,
    choices: Iterable[str] = (),
    only: Iterable[str] = (),
    below: float = math.inf,
) -> Any:
    """A field of a method: ``int`` at least 1, ``float`` positive, ``str`` one of ``choices``."""
    about = Option(doc, kind, tuple(choices), tuple(only), below)
    return field(default=default, metadata={"option": about})


def options_of(method: Any) -> dict[str, Option]:
    """Name and meaning of every option of a method (class or object), in order."""
    return {f.name: f.metadata["option"] for f in fields(method) if "option" in f.metadata}


def check(method: Any) -> None:
    """Refuse a value of the wrong kind, an unknown choice, an option of another realization."""
    where = getattr(method, "realization", None)
    for f in fields(method):
        about: Option | None = f.metadata.get("option")
        if about is None:
            continue
        value = getattr(method, f.name)
        if value is None and f.default is None:
            continue
        _check_value(f"{method.name}: {f.name}", value, about)
        if about.only and where not in about.only and value != f.default:
            raise InputError(
                f"{method.name}: {f.name} belongs to realization {' or '.join(about.only)}; "
                f"leave it out with realization {where!r}"
            )


def _check_value(place: str, value: Any, about: Option) -> None:
    kind = about.kind
    if kind is int and (type(value) is not int or value < 1):
        raise InputError(f"{place} = {shown(value)} must be a whole number, at least 1")
    if kind is int and value > MOST:
        raise InputError(f"{place} = {shown(value)} is more than {MOST:,}; give fewer")
    if kind is float and not (_is_number(value) and 0 < value < about.below):
        limit = "" if about.below == math.inf else f" below {about.below:g}"
        raise InputError(f"{place} = {shown(value)} must be a positive number{limit}")
    if kind is bool and not isinstance(value, bool):
        raise InputError(f"{place} = {shown(value)} must be true or false")
    if about.choices and not (isinstance(value, str) and value in about.choices):
        raise InputError(f"{place} = {shown(value)} is unknown; {nearest(value, about.choices)}")
    if kind not in (int, float, bool, str) and not isinstance(value, kind):
        raise InputError(f"{place}: expected {kind.__name__}, got {type(value).__name__}")


def _is_number(value: Any) -> bool:
    """Whether it is one, not beyond :data:`LARGEST`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST


def built(cls: type[M], options: Mapping[str, Any], others: Mapping[str, str]) -> M:
    """The method of class ``cls`` with ``options``; strings are read as the option's kind.

    ``others`` names, for options that ``cls`` does not have, a method that has them.
    """
    known = options_of(cls)
    values = {}
    label = getattr(cls, "name", cls.__name__)
    for name, value in options.items():
        refuse_option(label, name, known, others)
        values[name] = _read(f"{label}: {name}", value, known[name])
    return cls(**values)


def refuse_option(
    label: str, name: str, known: Iterable[str], others: Mapping[str, str] | None = None
) -> None:
    """An option that is not among the ``known`` ones, with the nearest, or who has it."""
    if name in known:
        return
    if others and name in others:
        raise InputError(f"{label}: has no option {name!r}; {others[name]} has")
    raise InputError(f"{label}: option {shown(name)} is unknown; {nearest(name, known)}")


def _read(place: str, value: Any, about: Option) -> Any:
    """Text of the command line as a number or truth value; mappings as the record asked for."""
    if isinstance(value, Mapping) and about.kind not in (int, float, bool, str, dict, list):
        unknown = [k for k in value if k not in {f.name for f in fields(about.kind)}]
        if unknown:
            names = [f.name for f in fields(about.kind)]
            raise InputError(
                f"{place}: {shown(unknown[0])} is unknown; {nearest(unknown[0], names)}"
            )
        return about.kind(**value)
    if about.kind is float and _is_number(value):
        return float(value)
    if not isinstance(value, str) or about.kind is str:
        return value
    if about.kind is bool and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if about.kind in (int, float):
        try:
            return about.kind(value)
        except ValueError:
            return value  # check names the option and what it takes
    return value


def described(cls: type[Any]) -> list[dict[str, Any]]:
    """The options of a method as a table: name, default, kind, choices, meaning."""
    rows = []
    for f in fields(cls):
        about: Option | None = f.metadata.get("option")
        if about is not None:
            default = None if f.default is MISSING else f.default
            rows.append(
                {
                    "name": f.name,
                    "default": default,
                    "kind": about.kind.__name__,
                    "choices": list(about.choices),
                    "realizations": list(about.only),
                    "meaning": about.doc,
                }
            )
    return rows
