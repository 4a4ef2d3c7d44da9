"""Objects show themselves: one short line, a table in a notebook, a picture."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ccmac

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def objects() -> dict[str, Any]:
    f = ccmac.objectives.Quadratic(np.diag([2.0, 1.0]), [0.0, 4.0])
    agents = [
        ccmac.Agent(f, A=[[1]], B=[[-share]], b=[1.0], D=[[1]], e=[1], name=f"<{share}>")
        for share in (0.2, 0.8)
    ]
    problem = ccmac.Problem(agents, row_names=["<demand>"])
    result = ccmac.solve(problem, "path", "cross-apapc", tol=1e-8)
    return {
        "problem": problem,
        "network": ccmac.Network.grid(2, 3),
        "plan": ccmac.plan(problem, "path"),
        "geometry": ccmac.geometry(problem),
        "ledger": result.ledger,
        "trace": result.trace,
        "result": result,
        "one step": ccmac.solve(problem, "path"),
    }


def test_every_object_has_a_picture_a_table_and_a_line() -> None:
    for name, shown in objects().items():
        axes = np.ravel(shown.plot())
        axes[0].figure.canvas.draw()
        assert any(len(one.patches) + len(one.lines) for one in axes), name
        page = shown._repr_html_()
        assert "<demand>" not in page
        assert "<0.2>" not in page
        assert name == "ledger" or len(repr(shown)) < 100


def test_the_bars_of_a_result_are_its_multipliers_and_its_bill() -> None:
    result = objects()["one step"]
    assert result.iterations == 1
    bill, residuals, multipliers = result.plot()
    shown = [bar.get_width() for bar in multipliers.patches]
    assert shown == [result.multipliers.coupled[0]]
    assert len(residuals.patches) == len(result.residuals)
    assert any(f"{result.ledger.total('rounds')}" in t.get_text() for t in bill.get_yticklabels())


def test_the_angle_that_is_drawn_is_the_angle() -> None:
    geometry = objects()["geometry"]
    line = geometry.plot()[0].lines[1].get_xydata()
    assert np.arctan2(*line[1][::-1]) == pytest.approx(geometry.friedrichs_angle, abs=1e-12)


def test_methods_show_themselves_as_a_table() -> None:
    known = ccmac.available_methods()
    assert str(known).count("\n") == len(known) - 1
    assert known._repr_html_().count("<tr>") == len(known) + 1


def test_agents_and_objectives_are_one_short_line() -> None:
    f = ccmac.objectives.Quadratic(np.eye(500))
    assert repr(f) == "Quadratic((x, z) of 500)"
    assert repr(ccmac.Agent(f, A=np.eye(500))) == "Agent(Quadratic, blocks: A)"


def test_without_matplotlib_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ccmac.errors.InputError, match="pip install 'ccmac\\[plot\\]'"):
        ccmac.Network.ring(3).plot()
