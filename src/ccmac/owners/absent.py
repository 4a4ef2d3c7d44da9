"""Somebody has gone for good: the others go on without it, from where they were.

What is solved then is the problem of those who are left: the absent owner's objective, variables,
equations and its part A_i x_i + B_i z - b_i of the coupled rows count no more.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.results import Solution
from ccmac.runtime import Runtime
from ccmac.storage.checkpoint import Store
from ccmac.storage.owner import Mine, Public


def without(
    path: Path, mine: Mine, public: Public, network: Network
) -> tuple[Mine, Public, Network]:
    """The files and the network of those who are left, numbered anew in their order."""
    names = [public.certificate_name(i) for i in range(public.agents)]
    left = [i for i, name in enumerate(names) if name not in public.absent]
    if mine.agent not in left:
        raise InputError(f"{path}: agent {mine.agent} is absent by the public file")
    new = {str(i): str(k) for k, i in enumerate(left)}
    near = {new[name]: where for name, where in mine.neighbors.items() if name in new}
    mine = msgspec.structs.replace(mine, agent=left.index(mine.agent), neighbors=near)
    gone = ", ".join(public.absent)
    public = msgspec.structs.replace(public, agents=len(left), names=[names[i] for i in left])
    try:
        name = f"{network.name} without {gone}"
        return mine, public, Network.from_graph(network.graph.subgraph(left), name=name)
    except InputError:
        raise InputError(
            f"{path}: without {gone} the others do not reach each other in {network.name}; give "
            'another network in the public file, such as "complete"'
        ) from None


def last_point(folder: Path, agent: int, q: int, runtime: Runtime) -> Solution | None:
    """x_i and z of the newest checkpoint that all who are left have of the run of all; ``agent`` is
    the number in that run.
    """
    store = Store(folder, runtime, range(agent, agent + 1))
    try:
        saved = store.open()
    finally:
        store.close()
    if saved is None:
        return None
    [point] = saved.agents["point"]
    x, z = np.split(point, [len(point) - q])
    with runtime.ledger.observing():
        return Solution([x], runtime.average(z[None])[0])
