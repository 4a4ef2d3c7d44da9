"""Pages are run: their Python blocks execute, and what they print is what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s+(?:prints\s+)?```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("name", ["README.md", "docs/guide.md", "docs/geometry.md"])
def test_page_prints_what_it_says(name: str) -> None:
    names: dict[str, object] = {}
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert blocks
    for code, expected in blocks:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(code, name, "exec"), names)
        assert shown.getvalue().split() == expected.split(), code


def test_the_readme_example_is_twenty_lines() -> None:
    code, expected = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    assert expected


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "picture.png"
    monkeypatch.setattr("sys.argv", [str(path), str(target)])
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        runpy.run_path(str(path), run_name="__main__")
    assert target.read_bytes()[:4] == b"\x89PNG"
    assert "optimal" in shown.getvalue()


def test_links_point_at_files() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
