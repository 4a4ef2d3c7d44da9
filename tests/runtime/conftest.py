"""Settings of the tests of connections."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error those who have not come yet are waited for more shortly."""
    if find_spec("cryptography") is not None:
        monkeypatch.setattr("ccmac.runtime.links.LINGER_SECONDS", 0.5)
