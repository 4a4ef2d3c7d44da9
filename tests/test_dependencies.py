"""What the package needs: bounded below, locked for the tests, licences listed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"].values()
NEEDED = sorted(
    {name for names in (PROJECT["dependencies"], *EXTRAS) for name in names if "[" not in name}
)
LOCK = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")


def name_of(requirement: str) -> str:
    return re.split("[<>=!~ ]", requirement)[0].replace("_", "-").lower()


@pytest.mark.parametrize("requirement", NEEDED)
def test_a_dependency_is_bounded_locked_and_listed(requirement: str) -> None:
    assert re.search(r">=\d", requirement)
    assert re.search(rf"^{re.escape(name_of(requirement))}==\d", LOCK, re.MULTILINE)
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {re.escape(name_of(requirement))} \| [^|]*\w", page, re.MULTILINE)


def test_the_lock_names_versions_and_nothing_else() -> None:
    for line in LOCK.splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+]+( ; [\w.'<>=! ()-]+)?", line), line
