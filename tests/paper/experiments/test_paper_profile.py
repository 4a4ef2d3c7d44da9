"""A small suite in the paper profile from end to end: the 302 runs in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccmac.cli.main import main
from ccmac.paper.experiments import suite as suites
from ccmac.paper.experiments.records import pending, read_records, read_suite

SUITE = """\
suite: small
data: a1a-like
agents: 8
alpha: [{cross_factor: 1.5}, {cross_factor: 2}, {cross_factor: 3}, {cross_factor: 5}]
networks: [path, ring]
methods:
  - name: cross-apapc
    paper: {realization: canonical, inner: 28, interval: certificate}
expect:
  reached: all
  paper: {alpha_aff: [0.95, 1.05], alpha_comm: [0.95, 1.05]}
"""
CALLS = (336, 420, 688, 1118)
PER_CALL = {"path": 6, "ring": 3}  # ceil sqrt(kappa_W)


def test_run_resume_verify_table_and_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,605 equations fit no dense factorization: as in all of the paper's own runs."""
    file = tmp_path / "small.yaml"
    out = tmp_path / "out"
    file.write_text(SUITE, encoding="utf-8")
    run = ["suite", "run", str(file), "--profile", "paper", "--out", str(out)]

    first = suites.read(SUITE, file.name, "paper").runs[0]
    assert main([*run, "--only", first.id]) == 0
    assert len(pending(out, read_suite(out))) == 7
    assert main([*run, "--resume"]) == 0
    capsys.readouterr()
    assert main([*run, "--resume"]) == 0
    assert "8 were done before" in capsys.readouterr().out

    records = read_records(out)
    assert {(r.status, r.reached, r.modelled) for r in records} == {("optimal", True, True)}
    assert all(r.summary["certificates"]["rests_on"] == "reference" for r in records)
    assert tuple(r.count("affine") for r in records if r.run.network["family"] == "ring") == CALLS
    for r in records:
        assert r.rounds == PER_CALL[r.run.network["family"]] * r.count("affine")

    for arguments, words in (
        (["verify", str(out)], "ok   8 runs reached the target, 8 expected"),
        (["table", str(out)], "| a1a-like | 1,605 | 123 | 8 | cross-apapc | 8/8 |"),
        (["figures", str(out), "--formats", "png"], "scaling.png"),
    ):
        capsys.readouterr()
        assert main(["suite", *arguments]) == 0, capsys.readouterr()
        assert words in capsys.readouterr().out
