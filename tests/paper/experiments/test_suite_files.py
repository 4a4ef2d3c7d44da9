"""Suites: what they expand to, and errors that point at the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.paper.experiments import suite
from ccmac.paper.experiments.runs import SuiteRun

GOOD = """\
suite: toy
tol: 1e-4
data: [a1a-like]
agents: [4, 8]
partition_seeds: [0, 1, 2]
alpha: [uniform, feature-norm, {cross_factor: 1.5}]
networks:
  - ring
  - erdos_renyi: {p: 0.5, seeds: [0, 1]}
methods:
  - name: cross-apapc
    paper: {realization: canonical, inner: 6}
expect: {reached: all, paper: {alpha_aff: [0.9, 1.1]}}
"""


def test_expansion_is_the_product_of_the_lists() -> None:
    found = suite.read(GOOD, "toy.yaml", "paper")
    assert len(found.runs) == 2 * 3 * 3 * 3
    assert len({run.id for run in found.runs}) == len(found.runs)
    assert found.expect == {"reached": "all", "alpha_aff": [0.9, 1.1]}
    assert suite.read(GOOD, "toy.yaml", "practical").expect == {"reached": "all"}
    run = found.runs[0]
    assert run.tol == 1e-4
    assert run.options == {"realization": "canonical", "inner": 6}
    assert SuiteRun.from_dict(run.as_dict()) == run


def test_one_solve_serves_all_graphs_of_the_oracle_only() -> None:
    oracle = suite.read(GOOD, "toy.yaml", "paper").runs
    executed = suite.read(GOOD, "toy.yaml", "practical").runs
    assert len({run.solve_key for run in oracle}) == len(oracle) // 3
    assert len({run.solve_key for run in executed}) == len(executed)


@pytest.mark.parametrize(
    ("name", "profile", "runs", "solves"),
    [
        ("scaling", "paper", 182, 14),
        ("scaling", "practical", 182, 182),
        ("scaling-tight", "paper", 182, 14),
        ("robustness", "paper", 48, 16),
        ("robustness", "practical", 48, 48),
        ("smoke", "practical", 8, 8),
    ],
)
def test_bundled_suites_have_their_size(name: str, profile: str, runs: int, solves: int) -> None:
    found = suite.load(name, profile)
    assert (len(found.runs), len({run.solve_key for run in found.runs})) == (runs, solves)


def test_every_bundled_suite_loads_in_every_profile_it_offers() -> None:
    sizes = {}
    for name in suite.bundled():
        for profile in suite.PROFILES:
            offered = "profiles: [" not in (text := suite.bundled()[name].read_text())
            if offered or f"profiles: [{profile}]" in text:
                sizes[name, profile] = len(suite.load(name, profile).runs)
    assert sizes["comparison", "paper"] == sizes["comparison", "practical"] == 60
    assert sizes["a8a", "paper"] == sizes["a8a", "practical"] == 12
    total = sum(sizes[name, "paper"] for name in ("scaling", "robustness", "comparison", "a8a"))
    assert total == 302


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("tol: 1e-4", "tol: tiny", 2, "tol: expected a number"),
        ("tol: 1e-4", "tol: 2", 2, "outside"),
        ("tol: 1e-4", "tolerance: 1e-4", 2, "the key is unknown"),
        ("[a1a-like]", "[a1b]", 3, "no data set is called 'a1b'"),
        ("[a1a-like]", "[./absent.svm]", 3, "does not exist"),
        ("[4, 8]", "[4, 0]", 4, "agents[1]: 0 is below 1"),
        ("[4, 8]", "[]", 4, "the list is empty"),
        ("1.5}", "0.5}", 6, "alpha[2].cross_factor: 0.5 lies outside"),
        ("  - ring", "  - rings", 8, "networks[0]: 'rings' is unknown"),
        ("  - ring", "  - grid: {rows: 2, cols: 4}", 8, "8 agents"),
        ("  - ring", "  - random_regular", 8, "needs its parameters"),
        ("p: 0.5", "p: 1.5", 9, "networks[1].erdos_renyi.p"),
        ("cross-apapc", "cross-apap", 11, "did you mean 'cross-apapc'?"),
        ("realization", "realisation", 12, "did you mean 'realization'?"),
        ("reached: all", "reached: most", 13, "expected a whole number"),
        ("tol: 1e-4", "tol: !!python/object:os.system x", 2, "could not determine a constructor"),
        ("[4, 8]", "[4, 8", 5, "not YAML"),
    ],
)
def test_errors_point_at_the_line(old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        suite.read(GOOD.replace(old, new, 1), "toy.yaml", "paper")
    message = str(caught.value)
    assert message.startswith(f"toy.yaml, line {line}: ")
    assert words in message
    assert "\n" not in message


def test_missing_keys_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the key 'methods' is missing"):
        suite.read("suite: x\ndata: a1a\nagents: 2\nnetworks: ring\n", "x.yaml")
    with pytest.raises(InputError, match="neither a file nor bundled"):
        suite.load("no-such-suite")
    with pytest.raises(InputError, match=r"x\.yaml, line 1: expected a mapping, got nothing"):
        suite.read("", "x.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="line 1: is not a UTF-8 text"):
        suite.load(str(binary))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^any\.yaml, line \d+: "):
        suite.read(text, "any.yaml")
