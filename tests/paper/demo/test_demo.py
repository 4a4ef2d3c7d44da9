"""``ccmac demo``: the story is true, the page is self-contained and escaped."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ccmac.paper import demo
from ccmac.paper.demo.story import TOL
from cli.conftest import Run


@pytest.fixture(scope="module")
def story() -> demo.Story:
    return demo.compute()


def test_the_certificate_covers_the_true_error(story: demo.Story) -> None:
    assert story.result.status == "optimal"
    assert story.distance <= story.result.error_bound
    size = np.sqrt(np.sum(story.direct**2) + np.sum(story.result.z**2))
    assert story.result.error_bound <= TOL * max(1.0, float(size))
    assert story.accuracy > 0.8


def test_the_story_tells_the_ledger(story: demo.Story) -> None:
    bill = " ".join(demo.tell(story))
    assert f"{story.result.ledger['rounds']:,} neighbor rounds" in bill
    assert f"{story.lift.rounds_per_iteration:,} rounds for one iteration" in bill


def test_files_and_text(
    run: Run, story: demo.Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "compute", lambda: story)
    told = run("demo", "--out", "shown")
    assert told.code == 0
    assert max(map(len, told.out.splitlines())) <= 80
    assert (tmp_path / "shown/demo.png").read_bytes()[:4] == b"\x89PNG"
    text = (tmp_path / "shown/demo.html").read_text()
    assert "data:image/png;base64," in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)  # nothing is fetched


def test_without_matplotlib_it_says_so(
    run: Run, story: demo.Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "compute", lambda: story)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert demo.picture(story.result, story.balanced) is None
    told = run("demo", "--out", "shown")
    assert told.code == 0
    assert "matplotlib is not installed" in told.out
    assert not (tmp_path / "shown/demo.png").exists()
    assert "<img" not in (tmp_path / "shown/demo.html").read_text()
