"""Every method takes its own options and refuses all others, by name, before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.methods import CrossApapc, Method
from ccmac.methods.base import options_of
from ccmac.methods.registry import REGISTRY, parse
from ccmac.runtime import InProcess
from pins.cases import PHASES, solved
from pins.options import BESIDE, OWNED, Offer, home, offers
from pins.problems import Posed, posed

TAKEN = [offer for offer in offers() if offer.taken]
REFUSED = [offer for offer in offers() if not offer.taken]
SUITE = """\
suite: pinned
data: toy
agents: 3
networks: [ring, path]
methods:
  - name: METHOD
    options: OPTIONS
"""
DATA = '''\
"""Ten rows, six features."""
import numpy as np

def toy():
    random = np.random.default_rng(3)
    return random.standard_normal((10, 6)), np.sign(random.standard_normal(10))

DATASETS = {"toy": toy}
'''


def attempt(method: str, options: dict[str, Any], **common: Any) -> ccmac.Result:
    """Two iterations with the options, on a problem that suits the method."""
    made = home(method, options)
    common = {"max_iterations": 2, "reference": made.reference, **common}
    return solved(made.problem, made.network, method, options, **common)


def named(offer: Offer) -> str:
    """The id of a test."""
    return offer.name.replace(" ", "/")


def test_the_table_knows_every_method_and_every_option() -> None:
    known = {name: set(options_of(cls)) for name, cls in REGISTRY.items()}
    assert known == {name: {*owned, *BESIDE.get(name, ())} for name, owned in OWNED.items()}


@pytest.mark.parametrize("offer", TAKEN, ids=named)
def test_options_are_taken(offer: Offer) -> None:
    assert attempt(offer.method, dict(offer.options)).iterations > 0


@pytest.mark.parametrize("method", OWNED)
def test_options_are_refused_by_name(method: str) -> None:
    """When the method is made: no problem is needed to know that an option is wrong."""
    for offer in REFUSED:
        if offer.method == method:
            with pytest.raises(InputError) as refusal:
                parse(method, dict(offer.options))
            assert offer.named in str(refusal.value), offer.name
            assert len(str(refusal.value)) < 400, offer.name


def test_a_wrong_value_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'averaged'"):
        parse("cross-apapc", {"realization": "average"})
    with pytest.raises(InputError, match="did you mean 'averaged'"):
        CrossApapc(realization="average")


def test_an_option_of_another_method_is_refused_with_its_owner() -> None:
    with pytest.raises(InputError, match="has no option 'penalty'; dpmm has"):
        parse("cross-cg", {"penalty": 1.0})


# -- through solve ---------------------------------------------------------------------------------
def uncharged(method: str | Method, match: str, made: Posed, **common: Any) -> None:
    """``solve`` refuses, and nothing is charged in any phase."""
    network = made.network or ccmac.Network.complete(1)
    runtime = InProcess(network)
    with pytest.raises(InputError, match=match):
        ccmac.solve(made.problem, network, method, runtime=runtime, **common)
    assert [phase for phase in PHASES if runtime.ledger.of(phase)] == []


@pytest.mark.parametrize("method", OWNED)
def test_max_iterations_is_a_whole_number(method: str) -> None:
    for count in (2.5, "3", True):
        uncharged(method, "max_iterations", home(method, {}), max_iterations=count)


@pytest.mark.parametrize("method", ["cross-apapc", "cross-continuation", "cross-sliding"])
def test_a_problem_of_agents_is_no_stack(method: str) -> None:
    uncharged(parse(method, {"realization": "stack"}), "realization", home(method, {}))


@pytest.mark.parametrize("realization", ["canonical", "certified"])
def test_a_stack_has_no_agents(realization: str) -> None:
    uncharged(CrossApapc(realization=realization), "realization", posed("stack"))


@pytest.mark.parametrize(
    "method", sorted(set(OWNED) - {"cross-apapc", "cross-continuation", "cross-sliding"})
)
def test_methods_of_agents_refuse_a_stack(method: str) -> None:
    uncharged(method, "Stack", posed("stack"))


@pytest.mark.parametrize("options", [{"inner": 3}, {"scale": 0.5}])
def test_a_stack_refuses_what_it_would_ignore(options: dict[str, Any]) -> None:
    """The realization of a Stack is "stack", said or not."""
    uncharged(parse("cross-apapc", options), next(iter(options)), posed("stack"))


@pytest.mark.parametrize("count", [0, -1])
def test_max_iterations_is_positive(count: int) -> None:
    uncharged("cross-apapc", "max_iterations", posed("quadratic"), max_iterations=count)


@pytest.mark.parametrize("tol", [0.0, -1.0, float("inf"), float("nan"), "small"])
def test_tol_is_positive(tol: Any) -> None:
    uncharged("cross-apapc", "tol", posed("quadratic"), tol=tol)


@pytest.mark.parametrize(
    ("method", "nearest"),
    [("cross-apcpc", "cross-apapc"), ("", "cross-cg"), ("Cross-CG", "cross-cg")],
)
def test_unknown_methods_are_refused(method: str, nearest: str) -> None:
    uncharged(method, nearest, posed("quadratic"))


# -- suites ----------------------------------------------------------------------------------------
def suite(folder: Path, method: str, options: str) -> tuple[int, int]:
    """(exit code, files of records) of ``ccmac suite run`` on a suite with these options."""
    (folder / "data.py").write_text(DATA, encoding="utf-8")
    text = SUITE.replace("METHOD", method).replace("OPTIONS", options)
    (folder / "suite.yaml").write_text(text, encoding="utf-8")
    out = folder / "out"
    files = [str(folder / name) for name in ("suite.yaml", "data.py")]
    code = main(["suite", "run", files[0], "--out", str(out), "--plugin", files[1]])
    return code, sum(1 for path in out.rglob("*") if path.is_file())


SUITES = (
    ("cross-cg", "{realization: canonical}"),
    ("cross-cg", "{iner: 3}"),
    ("cross-apapc", "{iner: 3}"),
    ("cross-apapc", "{realization: average}"),
    ("dpmm", "{penatly: 5}"),
    ("dpmm", "{reduction: R7}"),
    ("cross-apapc", "{realisation: canonical}"),
)


@pytest.mark.parametrize(("method", "options"), SUITES)
def test_suites_are_refused_whole(
    method: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong options end in one line and exit code 2, and nothing is recorded."""
    assert suite(tmp_path, method, options) == (InputError.exit_code, 0)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_right_suites_run(tmp_path: Path) -> None:
    code, records = suite(tmp_path, "cross-apapc", "{realization: canonical}")
    assert code == 0
    assert records > 0
