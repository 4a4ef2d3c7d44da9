"""Fits, tables and figures are functions of the records alone."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.paper.experiments.analysis import (
    Quartiles,
    accuracy_fit,
    affine_fit,
    band,
    rows,
    two_factor_fit,
)
from ccmac.paper.experiments.records import Record
from ccmac.paper.experiments.tables import render
from paper.experiments.toy import fabricate, made_run

CHIS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
KAPPAS = {"a": 4.0, "b": 9.0, "c": 25.0, "d": 49.0}


def made(chi: float, kappa: float, seed: int, affine: float, rounds: float, data: str) -> Record:
    summary = {
        "status": "optimal",
        "relative_error": 5e-7,
        "geometry": {"cross_factor": chi},
        "provenance": {"kappa_W": kappa},
        "ledger": {"solve": {"affine": affine, "rounds": rounds}},
    }
    return Record(made_run(chi, seed, data), summary, Path("nowhere"))


def grid(count: object) -> list[Record]:
    return [
        made(chi, kappa, seed, *count(chi, kappa, data), data)  # type: ignore[operator]
        for data in ("first", "second")
        for chi in CHIS
        for seed, kappa in enumerate(KAPPAS.values())
    ]


@given(st.floats(0.3, 2.0), st.floats(0.3, 2.0))
def test_fits_recover_exact_powers_with_different_levels(a: float, b: float) -> None:
    def count(chi: float, kappa: float, data: str) -> tuple[float, float]:
        level = 1e6 if data == "first" else 7e6
        return level * chi**a, level * chi**a * math.sqrt(kappa) ** b

    records = grid(count)
    affine = affine_fit(records)
    both = two_factor_fit(records)
    assert affine is not None
    assert both is not None
    # Counts are whole numbers: rounding one in a million moves a slope by less than 1e-5.
    assert affine.exponents[0] == pytest.approx(a, abs=1e-5)
    assert both.exponents == pytest.approx((a, b), abs=1e-5)
    assert affine.interval[0] == pytest.approx((a, a), abs=1e-5)
    assert affine.graphs == 4
    assert affine.runs == 2 * 5 * 4


def test_runs_that_missed_or_lie_on_the_plateau_are_left_out() -> None:
    records = grid(lambda c, k, _: (1e4 * c, 1e5 * c * math.sqrt(k)))
    records[0].summary["ledger"]["solve"]["affine"] = 1
    missed = made(3.0, 4.0, 0, 1.0, 1.0, "first")
    missed.summary.update(status="max_iterations", relative_error=1e-3)
    fit = affine_fit([*records, missed])
    assert fit is not None
    assert fit.exponents[0] == pytest.approx(1.0, abs=1e-6)
    assert affine_fit(records[:2]) is None
    assert accuracy_fit(records) is None
    same = [r for r in records if r.cross_factor == 3.0]
    assert affine_fit(same) is None


def test_quartiles_and_bands() -> None:
    assert Quartiles.of([1160, 1740, 1740, 1160, 1160, 1160]).high == 1595
    x = np.array([1.0, 10.0, 100.0])
    found = band([(x, np.array([1.0, 1e-1, 1e-4])), (x, np.array([1.0, 1e-3, 1e-6]))], points=3)
    assert found.x == pytest.approx(x)
    assert found.low == pytest.approx([1.0, 1e-3, 1e-6])
    assert found.high == pytest.approx([1.0, 1e-1, 1e-4])
    assert found.median == pytest.approx([1.0, 1e-2, 1e-5])


def test_tables_in_every_form(tmp_path: Path) -> None:
    records = fabricate(
        tmp_path, lambda c, k, _: (round(100 * c), round(1000 * c)), chis=(2.0,), kappas=KAPPAS
    )
    markdown = render(records)
    assert "| first | 100 | 7 | 8 | cross-apapc | 4/4 | 30 | 200 | 60 | 2,000 |" in markdown
    assert len(markdown.splitlines()) == 4
    latex = render(records, "latex")
    assert r"\texttt{first} & 100 & 7 & 8 & cross-apapc & 4/4 & 30 & 200 & 60 & 2\,000" in latex
    assert r"$5.00\times10^{-7}$" in latex
    [first, second] = csv.DictReader(io.StringIO(render(records, "csv")))
    assert (first["data"], first["rounds_median"], second["data"]) == ("first", "2000.0", "second")
    assert json.loads(render(records, "json"))[0]["affine"]["median"] == 200
    assert rows(records)[0].worst_error == 5e-7
    with pytest.raises(InputError, match="take markdown, latex, csv, json"):
        render(records, "word")


def test_figures_are_drawn_without_a_display(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from ccmac.paper.experiments.figures import draw

    fabricate(
        tmp_path,
        lambda c, k, _: (round(100 * c), round(99 * c * math.sqrt(k))),
        chis=CHIS,
        kappas={"a": 4.0, "b": 9.0},
    )
    written = draw(tmp_path, tmp_path / "figures", ["png"])
    names = sorted(path.stem for path in written)
    assert names == ["convergence-first-8", "convergence-second-8", "scaling"]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in written)
    with pytest.raises(InputError, match="take png, pdf, svg"):
        draw(tmp_path, tmp_path / "figures", ["gif"])


def test_a_sweep_of_accuracies_has_its_figure() -> None:
    pytest.importorskip("matplotlib")
    from ccmac.paper.experiments.figures import figures

    records = []
    for tol in (1e-1, 1e-2, 1e-3):
        record = made(2.0, 4.0, 0, 1.0, 100 / tol, "first")
        record.summary["ledger"]["solve"]["gradients"] = round(10 / math.sqrt(tol))
        records.append(Record(replace(record.run, tol=tol), record.summary, record.folder))
    [(name, figure)] = figures(records).items()
    assert name == "accuracy"
    [line] = figure.axes[1].lines
    assert list(line.get_ydata()) == [1e3, 1e4, 1e5]


def test_labels_are_escaped_in_every_form() -> None:
    label = "a|b_$x$ {1}\\~^"
    record = made(3.0, 4.0, 0, 1.0, 1.0, "=1+1")
    named = Record(replace(record.run, label=label), record.summary, record.folder)
    assert r"| =1+1 |" in render([named])
    assert r"| a\|b\_$x$ \{1\}\\~^ |" in render([named])
    latex = render([named], "latex")
    assert r"a|b\_\$x\$ \{1\}\textbackslash{}\textasciitilde{}\textasciicircum{}" in latex
    [row] = csv.DictReader(io.StringIO(render([named], "csv")))
    assert (row["data"], row["label"]) == ("'=1+1", label)
