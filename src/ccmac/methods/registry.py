"""The methods by name, and the one place where names and options become a method."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import Any

from ccmac.errors import InputError, MethodRefused
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.auto import Auto
from ccmac.methods.base import Method, built, described, options_of
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import CrossDirect
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.newton.method import CrossNewton
from ccmac.methods.paper import METHODS, imported
from ccmac.methods.realized import RealizedMethod
from ccmac.methods.sliding.method import CrossSliding
from ccmac.show import Listing
from ccmac.texts import nearest, shown
from ccmac.workspace import Workspace


class Registry(UserDict[str, Any]):
    """Classes of methods by name; those given as a place in ``ccmac.paper`` come when asked for."""

    def __getitem__(self, name: str) -> type[Method]:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = imported(found)
        return found  # type: ignore[no-any-return]


REGISTRY = Registry(
    {
        "cross-apapc": CrossApapc,
        "cross-cg": CrossCg,
        "cross-direct": CrossDirect,
        "cross-ipm": CrossIpm,
        "cross-lbfgs": CrossLbfgs,
        "cross-continuation": CrossContinuation,
        "cross-sliding": CrossSliding,
        **METHODS,
        "cross-newton": CrossNewton,  # last: it takes not all that is smooth
    }
)


def find(name: str) -> type[Method]:
    """The class of the method called ``name``."""
    if name == Auto.name:
        return Auto
    if name not in REGISTRY:
        known = [Auto.name, *REGISTRY]
        raise InputError(f"method {shown(name)} is unknown; {nearest(name, known)}")
    return REGISTRY[name]


def parse(method: str | Method, options: Mapping[str, Any] | None = None) -> Method:
    """A method from its name and options, or the one given; refuses what it does not know."""
    if isinstance(method, type) and issubclass(method, Method):
        method = method()
    if isinstance(method, Method):
        if options:
            raise InputError(f"{method.name}: give options to the method itself, not next to it")
        return method
    if not isinstance(method, str):
        raise InputError(
            f"method: expected a name or a method such as ccmac.methods.CrossApapc(), "
            f"got {type(method).__name__}"
        )
    others = {
        option: name for name, cls in reversed(list(REGISTRY.items())) for option in options_of(cls)
    }
    return built(find(method), options or {}, others)


def refuse_unless_fit(method: Method, work: Workspace) -> None:
    """Raise MethodRefused naming the missing need and a method that would work."""
    method.refuse_shape(work.stack is not None)
    if work.curvature.conic and not isinstance(method, CrossIpm | Auto):
        raise MethodRefused(
            f"method {method.name} does not take cones, which some agent has; use {CrossIpm.name}"
        )
    if work.curvature.conic and not work.curvature.polyhedral:
        raise MethodRefused(
            f"method {method.name} takes cones next to quadratics, kinks and smooth losses, and "
            "some agent's objective is none; use another objective, or no cones"
        )
    missing = sorted(method.needs - work.capabilities)
    if missing:
        raise MethodRefused(
            f"method {method.name} needs {' and '.join(missing)}, which the problem does not "
            f"offer; use {_fitting(work)}"
        )


def _fitting(work: Workspace) -> str:
    """The first method whose needs the problem meets."""
    stacked = work.stack is not None
    for name, cls in REGISTRY.items():
        if cls.needs <= work.capabilities and (issubclass(cls, RealizedMethod) or not stacked):
            return name
    return Auto.name


def available_methods() -> Listing:
    """The methods by name: what each does, what it needs of the objectives, its options.

    Returns
    -------
    dict
        ``{"summary", "needs", "options"}`` by name. Printed, it is a table.

    Examples
    --------
    >>> import ccmac
    >>> ccmac.available_methods()["cross-cg"]["needs"]
    ['quadratic', 'smooth', 'strongly convex']
    """
    return Listing(
        {
            name: {"summary": cls.summary, "needs": sorted(cls.needs), "options": described(cls)}
            for name, cls in REGISTRY.items()
        }
    )
