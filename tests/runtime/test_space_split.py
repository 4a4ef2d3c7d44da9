"""Inner products do not depend, to the last bit, on which agents share a process."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space


@pytest.mark.parametrize("q", [1, 17, 8193, 20001])  # NumPy's iterators work in pieces of 8192
@pytest.mark.parametrize("lift", [0, 9001])
def test_an_agents_contribution_is_its_own(q: int, lift: int) -> None:
    rng = np.random.default_rng(q + lift)
    dimensions = [3, 0, 8200, 5, 1]
    whole = Space(InProcess(Network.ring(5), fused=False), dimensions, q, lift)
    u, v = rng.standard_normal((2, whole.size))
    together = whole.partial_dots(u, v)
    for k, d in enumerate(dimensions):
        alone = Space(InProcess(Network.ring(1), fused=False), [d], q, lift)
        cut = [np.concatenate([whole.x_of(w, k), whole.z(w)[k], whole.y(w)[k]]) for w in (u, v)]
        assert np.array_equal(alone.partial_dots(*cut)[0], together[k])
    assert whole.dot(u, v) == pytest.approx(float(u @ v), rel=1e-9)
