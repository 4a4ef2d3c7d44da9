"""Every method takes its own options and refuses all others, by name, before any work.

Few options have an owner today: of what must be refused, ``refused_options.txt`` lists what is (one
offer a line); the others are expected to fail. Mending one asks for its line, mending all for the
end of the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.runtime import InProcess
from pins.cases import PHASES, solved
from pins.options import OWNED, Offer, home, offers
from pins.problems import posed

REFUSED = frozenset(
    Path(__file__).with_name("refused_options.txt").read_text(encoding="utf-8").splitlines()
)
OFFERS = offers()
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


def check(offer: Offer) -> None:
    """Taken, or refused with the name that is meant."""
    if offer.taken:
        assert attempt(offer.method, dict(offer.options)).iterations > 0
        return
    with pytest.raises(InputError) as refusal:
        attempt(offer.method, dict(offer.options))
    assert offer.named in str(refusal.value)


def marked(offer: Offer) -> Any:
    wrong = not offer.taken and offer.name not in REFUSED
    marks = [pytest.mark.xfail(strict=True, reason="options have no owner yet")] if wrong else []
    return pytest.param(offer, id=offer.name.replace(" ", "/"), marks=marks)


def test_the_list_of_refusals_names_offers() -> None:
    assert {offer.name for offer in OFFERS if not offer.taken} >= REFUSED


def test_the_table_knows_every_method() -> None:
    listing = getattr(ccmac, "available_methods", None) or ccmac.methods
    assert set(OWNED) == set(listing())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what a wrong value does inside, today
@pytest.mark.parametrize("offer", [marked(offer) for offer in OFFERS])
def test_options_are_taken_or_refused(offer: Offer) -> None:
    check(offer)


@pytest.mark.parametrize(
    ("normalizer", "nearest"),
    [pytest.param("deflaton", "deflation", marks=pytest.mark.xfail(
        strict=True, reason="not enough values to unpack"))],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_the_nearest(normalizer: str, nearest: str) -> None:
    with pytest.raises(InputError, match=nearest):
        attempt("cross-apapc", {"normalizer": normalizer})


@pytest.mark.xfail(strict=True, reason="refused while preparing, after gathering and averaging")
@pytest.mark.parametrize("method", OWNED)
def test_refused_before_any_work(method: str) -> None:
    """Nothing is charged in any phase."""
    made = home(method, {})
    runtime = InProcess(made.network)
    common = {"runtime": runtime, "max_iterations": 2}
    with pytest.raises(InputError):
        solved(made.problem, made.network, method, {"realization": "nonsense"}, **common)
    assert [phase for phase in PHASES if runtime.ledger.of(phase)] == []


@pytest.mark.xfail(strict=True, reason="only compared with 1")
@pytest.mark.parametrize("method", OWNED)
@pytest.mark.parametrize("count", [2.5, "3"])
def test_max_iterations_is_a_whole_number(method: str, count: Any) -> None:
    with pytest.raises(InputError, match="max_iterations"):
        attempt(method, {}, max_iterations=count)


@pytest.mark.parametrize("count", [0, -1])
def test_max_iterations_is_positive(count: int) -> None:
    with pytest.raises(InputError, match="max_iterations"):
        attempt("cross-apapc", {}, max_iterations=count)


@pytest.mark.parametrize("tol", [0.0, -1.0, float("inf"), float("nan"), "small"])
def test_tol_is_positive(tol: Any) -> None:
    with pytest.raises(InputError, match="tol"):
        attempt("cross-apapc", {}, tol=tol)


@pytest.mark.parametrize("method", ["cross-apcpc", "", "Cross-CG"])
def test_unknown_methods_are_refused(method: str) -> None:
    made = posed("quadratic")
    with pytest.raises(InputError, match="cross-cg"):
        solved(made.problem, made.network, method, {})


def test_averaging_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="relay"):
        attempt("cross-apapc", {"averaging": "rely"})


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
    ("cross-cg", "{realization: canonical}", True),
    ("cross-cg", "{iner: 3}", True),
    ("cross-apapc", "{iner: 3}", True),
    ("cross-apapc", "{normalizer: deflaton}", True),
    ("dpmm", "{penatly: 5}", True),
    ("dpmm", "{reduction: R7}", True),
    ("cross-apapc", "{realisation: canonical}", False),
)


@pytest.mark.parametrize(("method", "options"), [
    pytest.param(method, options, id=f"{method}-{options}", marks=[pytest.mark.xfail(
        strict=True, reason="recorded as run, or failed inside")] if wrong else [])
    for method, options, wrong in SUITES
])  # fmt: skip
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
