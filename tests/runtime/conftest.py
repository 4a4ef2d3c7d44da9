"""Settings of the tests of connections."""

from __future__ import annotations

import pytest

from ccmac.runtime import links


@pytest.fixture(autouse=True)
def nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error those who have not come yet are waited for more shortly."""
    monkeypatch.setattr(links, "LINGER_SECONDS", 0.5)
