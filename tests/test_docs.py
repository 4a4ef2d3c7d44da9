"""Pages are run: their Python blocks execute, and what they print is what the page says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import ccmac

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s+(?:prints\s+)?```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))
OLD = (
    "pinned=",
    "ccmac.methods()",
    "state.vectors",
    "state.rows[",
    "degree_1",
    "ccmac.pipeline",
    "ccmac.solvers",
    "ccmac.baselines",
    "ccmac.instances",
    "ccmac.data",
    "ccmac.experiments",
)


PAGES = [
    "docs/guide.md",
    "docs/start.md",
    "docs/learn-problem.md",
    "docs/learn-geometry.md",
    "docs/learn-plan.md",
    "docs/learn-bound.md",
    "docs/learn-bill.md",
    "docs/geometry.md",
    "docs/limits.md",
    "docs/cvxpy.md",
    "docs/vertical.md",
    "docs/power.md",
    "docs/control.md",
    "docs/operations.md",
    "docs/again.md",
    "docs/trust.md",
    "docs/methods-why.md",
    "docs/calibration.md",
    "docs/do-not-believe-us.md",
]


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pages write pictures and folders where they run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


def printed(code: str, name: str, names: dict[str, object]) -> str:
    """What a block prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code, name, "exec"), names)
    return shown.getvalue()


@pytest.mark.parametrize("name", PAGES)
def test_page_prints_what_it_says(name: str, in_tmp: Path) -> None:
    names: dict[str, object] = {}
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert blocks
    for code, expected in blocks:
        assert printed(code, name, names).split() == expected.split(), code


def test_each_door_of_the_readme_is_ten_lines_and_stands_alone(in_tmp: Path) -> None:
    doors = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(doors) == 3
    for code, expected in doors:
        assert len([line for line in code.splitlines() if line.strip()]) <= 10
        assert printed(code, "README.md", {}).split() == expected.split()
    assert (in_tmp / "grid.png").read_bytes()[:4] == b"\x89PNG"


NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def assert_same_numbers(shown: str, expected: str) -> None:
    """Same words, and numbers to 1e-6; what is below 1e-4 (a bound, a residual) to its order."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", expected).split()
    for got, wanted in zip(NUMBER.findall(shown), NUMBER.findall(expected), strict=True):
        one, other = (float(text.replace(",", "")) for text in (got, wanted))
        if abs(other) < 1e-4:
            assert abs(one) <= max(10 * abs(other), 1e-6), f"{got} was {wanted}"
        else:
            assert one == pytest.approx(other, rel=1e-6), f"{got} was {wanted}"


@pytest.mark.gallery
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    pictures = path.parent / "pictures"
    name = path.stem.removeprefix("plot_")
    target = tmp_path / "picture.png"
    monkeypatch.setattr("sys.argv", [str(path), str(target)])
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        runpy.run_path(str(path), run_name="__main__")
    assert target.read_bytes()[:4] == b"\x89PNG"
    assert (pictures / f"{name}.png").exists()
    assert_same_numbers(shown.getvalue(), (pictures / f"{name}.txt").read_text(encoding="utf-8"))


@pytest.mark.gallery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_gives_what_it_shows(path: Path, in_tmp: Path) -> None:
    pytest.importorskip("matplotlib")
    made = runpy.run_path(str(ROOT / "docs" / "make" / "notebooks.py"))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for old, new in zip(cells, made["executed"](cells), strict=True):
        was, found = old.get("outputs", []), new.get("outputs", [])
        assert [one["output_type"] for one in found] == [one["output_type"] for one in was]
        for one, other in zip(found, was, strict=True):
            texts = [
                "".join(o.get("text", o.get("data", {}).get("text/plain", "")))
                for o in (one, other)
            ]
            assert_same_numbers(*texts)


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmark_imports_what_exists(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(path.parent))  # as where it runs by itself
    assert runpy.run_path(str(path), run_name="benchmark")


def test_links_point_at_files() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make" / "pages.py"))["generated"]()
    pages = [
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    ]
    pages += (ROOT / "docs").glob("*.md")
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or target in made, f"{page.name}: {target}"


def test_the_tables_of_options_are_current() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make" / "options.py"))
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert "<!-- options -->" in page
    assert made["renewed"](page) == page, "run: python docs/make/options.py"


def test_the_tables_name_every_method_and_option() -> None:
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    for name, about in ccmac.available_methods().items():
        assert f"| `{name}` |" in page
        for option in about["options"]:
            assert f"| `{option['name']}` |" in page


@pytest.mark.parametrize("words", OLD)
def test_no_page_speaks_the_old_interface(words: str) -> None:
    """The changelog alone says what moved."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for folder in ("examples", "benchmarks", "src/ccmac"):
        files += [path for path in (ROOT / folder).rglob("*.py") if path.name != "api.py"]
    found = [path.name for path in files if words in path.read_text(encoding="utf-8")]
    assert not found


@pytest.mark.parametrize(("page", "least"), [("docs/architecture.md", 30), ("CONTRIBUTING.md", 5)])
def test_pages_about_the_code_name_places_that_exist(page: str, least: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    places = set(re.findall(r"`([a-z_]+(?:/[a-z_]*)*(?:\.py|/))`", text))
    assert len(places) > least
    for place in places:
        name = place.rstrip("/")
        assert (ROOT / name).exists() or any((ROOT / "src" / "ccmac").rglob(name)), place


def test_the_architecture_gives_the_order_of_imports() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"    errors < .*?\n\n", page, re.DOTALL)
    assert block is not None
    said = [sorted(place.split(", ")) for place in " ".join(block[0].split()).split(" < ")]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [c for c in contract["tool"]["importlinter"]["contracts"] if c["id"] == "layers"]
    asked = [sorted(layer.split(" | ")) for layer in reversed(layers["layers"])]
    assert said == asked
