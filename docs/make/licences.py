"""Write docs/licences.md: what the package needs, directly and through others, and its licence.

    python docs/make/licences.py

Reads the metadata of the packages installed beside this interpreter; what is not installed is
listed without a licence and makes the exit code 1.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "licences.md"
HEAD = """\
# Licences

ccmac itself is under the [MIT licence](https://opensource.org/license/mit). What it needs, as the
packages declare it themselves; written by `python docs/make/licences.py`. "Needed for" names the
extra that asks for a package, "core" is the plain installation; packages that others bring along
are listed with them.

| package | licence | needed for |
|---|---|---|
"""
SHORT = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


def normal(name: str) -> str:
    """The name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """The package of a requirement."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return normal(match[0])


def licence(name: str) -> str | None:
    """As declared: an expression, a classifier or the first line of a text."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if said.get("License-Expression"):
        return str(said["License-Expression"])
    classes = [
        c.split(" :: ")[-1] for c in said.get_all("Classifier", []) if c.startswith("License")
    ]
    classes = [SHORT.get(c, c) for c in classes if c != "OSI Approved"]
    text = str(said.get("License") or "").strip().split("\n")[0]
    return ", ".join(dict.fromkeys(classes)) or text or "not declared"


def brought(name: str) -> list[str]:
    """Packages that ``name`` needs in its plain form, here."""
    try:
        listed = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    found = [name_of(r) for r in listed if "extra ==" not in r]
    return [other for other in found if licence(other) is not None]


def rows() -> dict[str, set[str]]:
    """package -> what asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, set[str]] = {}
    for group, requirements in groups.items():
        left = [name_of(r) for r in requirements if not r.startswith("ccmac")]
        seen: set[str] = set()
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                found.setdefault(name, set()).add(group)
                left += brought(name)
    return found


def page() -> tuple[str, list[str]]:
    """The text, and the packages that are not installed here."""
    lines = []
    absent = []
    for name, groups in sorted(rows().items()):
        said = licence(name)
        if said is None:
            absent.append(name)
        needed = "core" if "core" in groups else ", ".join(sorted(groups))
        lines.append(f"| {name} | {said or 'not installed'} | {needed} |")
    return HEAD + "\n".join(lines) + "\n", absent


if __name__ == "__main__":
    text, absent = page()
    PAGE.write_text(text, encoding="utf-8")
    print(
        f"{PAGE.relative_to(ROOT)}: {text.count(chr(10)) - 9} packages; absent: {absent or 'none'}"
    )
    sys.exit(int(bool(absent)))
