"""What fails today, and why; an entry that passes is an error, so the list cannot go stale."""

from __future__ import annotations

FAILING: dict[str, str] = {}
FAILING_METHODS: dict[str, str] = {}
