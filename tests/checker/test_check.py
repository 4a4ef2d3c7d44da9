"""ccmac-check: what it says of ordinary results, of tampered ones, and when it is changed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import ccmac_check
import numpy as np
import pytest
from scipy.sparse import coo_array

import ccmac
from ccmac.errors import InputError
from ccmac.objectives import Custom, SquaredDistance
from checker import tamper
from checker.cases import CASES, solved
from checker.judge import judged

SOURCE = Path(ccmac_check.__file__)
RUN = "from ccmac.cli.main import run; run()"


@pytest.mark.parametrize("name", CASES)
def test_ordinary_results_are_confirmed(name: str) -> None:
    status, words = judged(*solved(name))
    assert status == "confirmed", words


@pytest.mark.parametrize("name", ["LogisticRegression", "Poisson", "Lasso", "Quantile", "SVC"])
def test_estimators_are_confirmed(name: str) -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((60, 6))
    y = random.poisson(np.exp(0.3 * X[:, 0]))
    tables = {"one": X[:, :3], "other": X[:, 3:]}
    found = getattr(ccmac.vfl, f"Vertical{name}")().fit(tables, np.minimum(y, 1)).result_
    assert judged(found._problem, found)[0] == "confirmed"


def test_it_shares_no_code() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    found = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in found} - set(sys.stdlib_module_names)
    assert outside == {"numpy", "scipy"}


def test_tampered_proofs_are_not() -> None:
    seen = tamper.run(24)
    assert not seen["wrong"]
    assert sum(n for line, n in seen.items() if "false: not confirmed" in line) > 10


# -- the command -----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tamper.Folder:
    place = tmp_path_factory.mktemp("proof")
    return tamper.Folder(place, *solved("quadratic program"))


def test_exit_codes(
    folder: tamper.Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: Path) -> tuple[int, str]:
        code = ccmac_check.main(list(map(str, arguments)))
        out, errors = capsys.readouterr()
        assert not errors
        return code, out

    words = [sys.executable, SOURCE, folder.problem, folder.result]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:11], done.stderr) == (0, "confirmed: ", "")
    assert command(folder.problem, tmp_path)[0] == 2
    assert command(tmp_path, folder.result)[0] == 2
    problem, _ = solved("plants")
    stopped = ccmac.solve(problem, "ring", "cross-cg", 1e-12, max_iterations=1)
    stopped.error_bound = float("nan")
    stopped.status = "max_iterations"
    stopped.save(tmp_path / "result")
    problem.save(tmp_path / "problem")
    assert command(tmp_path / "problem", tmp_path / "result")[0] == 4
    code, out = command(tmp_path / "problem", folder.result)
    assert (code, out.strip()) == (1, "not confirmed: the proof is about another problem")


def test_solve_writes_a_proof(tmp_path: Path) -> None:
    problem, result = solved("inequalities")
    problem.save(tmp_path / "problem")
    done = subprocess.run(
        [sys.executable, "-c", RUN, "solve", "problem", "--network", "ring", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ccmac_check.check(tmp_path / "problem", tmp_path / "out")[0] == "confirmed"
    found = ccmac.Result.load(tmp_path / "out")
    assert found.status == "optimal"
    np.testing.assert_allclose(found.x[1], result.x[1], atol=1e-6)


def test_a_reference_claims_nothing(tmp_path: Path) -> None:
    problem, known = solved("ridge")
    result = ccmac.solve(problem, "ring", "cross-apapc", 1e-4, reference=known)
    assert result.certificates["rests_on"] == "reference"
    assert judged(problem, result)[0] == "not checked"


def test_code_is_not_checked(tmp_path: Path) -> None:
    f = Custom(lambda x, z: float(x @ x), lambda x, z: 2 * x, smoothness=2.0, strong_convexity=2.0)
    problem = ccmac.Problem([ccmac.Agent(f, A=[[1.0]], b=[1.0])], q=0)
    result = ccmac.solve(problem, "path")
    result.save(tmp_path / "result")
    assert json.loads((tmp_path / "result" / "proof.json").read_text())["problem"] is None


def test_a_warm_start_is_part_of_the_proof() -> None:
    problem, result = solved("quadratic program")
    far = ccmac.results.Solution([v + 50.0 for v in result.x], result.z)
    again = ccmac.solve(problem, "ring", warm_start=far)
    assert again.start is not None
    np.testing.assert_array_equal(again.start.x[0], far.x[0])
    assert judged(problem, again)[0] == "confirmed"


# -- saved results ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["mixed", "quadratic program", "far", "falling"])
def test_results_come_back(name: str, tmp_path: Path) -> None:
    _, result = solved(name)
    result.save(tmp_path / "result")
    found = ccmac.Result.load(tmp_path / "result")
    assert found.status == result.status
    assert found.message == result.message
    for a, b in zip(found.x, result.x, strict=True):
        np.testing.assert_array_equal(a, b)
    if result.multipliers is not None:
        np.testing.assert_array_equal(found.multipliers.coupled, result.multipliers.coupled)
    if result.infeasibility is not None:
        assert found.infeasibility.radius == result.infeasibility.radius
    np.testing.assert_equal(found.error_bound, result.error_bound)
    with pytest.raises(InputError, match="not empty"):
        result.save(tmp_path / "result")
    result.save(tmp_path / "result", replace=True)


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    _, result = solved("plants")
    with pytest.raises(InputError, match="not found"):
        ccmac.Result.load(tmp_path)
    result.save(tmp_path / "result")
    (tmp_path / "result" / "solution.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="checksum"):
        ccmac.Result.load(tmp_path / "result")
    (tmp_path / "result" / "proof.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        ccmac.Result.load(tmp_path / "result")


# -- the checker's own formulas --------------------------------------------------------------------
def at_the_edge(name: str, place: Path, shift: float) -> list[tamper.Folder]:
    """Proofs that claim a little more and a little less than the checker can show."""
    folder = tamper.Folder(place, *solved(name))
    for key in list(folder.arrays):
        if key in ("z", "coupled") or key[0] == "x":
            folder.arrays[key] *= 1.0 - shift * (1 + np.arange(len(folder.arrays[key])))
    claim = folder.head["claims"][0]
    word = {"gap": "gap", "error": "bound"}[claim["kind"]]
    claim |= {word: {"gap": -1e9, "bound": 1e-25}[word], "tol": 1e3, "met": True}
    shown = float(folder.judged()[1].split("at most ")[1].split(",")[0])
    found = []
    for k, room in enumerate((0.01, -0.02)):
        copy = tamper.Folder(place / str(k), *solved(name))
        copy.arrays = folder.arrays
        copy.head = json.loads(json.dumps(folder.head))
        copy.head["claims"][0][word] = shown + room * abs(shown)
        copy.judged()
        found.append(copy)
    return found


SHARP = (
    "half bounded",
    "inequalities",
    "ridge",
    "vertical logistic",
    "logistic",
    "classes",
    "counts",
)


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[tamper.Folder, str]]:
    found = []
    for name in SHARP:
        place = tmp_path_factory.mktemp(name.replace(" ", "-"))
        for folder in at_the_edge(name, place, 1e-3):
            found.append((folder, ccmac_check.check(folder.problem, folder.result)[0]))
    for name in ("far", "falling", "hinges", "machine", "contradictory cones", "cones"):
        folder = tamper.Folder(tmp_path_factory.mktemp(name), *solved(name))
        found.append((folder, "confirmed"))
    return found


def test_the_edge_is_sharp(edges: list[tuple[tamper.Folder, str]]) -> None:
    assert [status for _, status in edges[: 2 * len(SHARP)]] == [
        "confirmed",
        "not confirmed",
    ] * len(SHARP)


CHANGES = [
    ("- (y * e).sum()", "+ (y * e).sum()"),
    ("(norm(r[~there]) + 2 * off * UP) * radius", "0.0"),
    ("np.where(there, ends, start)", "np.where(there, start, ends)"),
    ("product(problem.M.T, s) + pull", "product(problem.M.T, s) - pull"),
    ("end = np.where(r > 0, problem.lower", "end = np.where(r < 0, problem.lower"),
    ("-w * y * of_each", "-y * of_each"),
    ("rest = (c + (norm(r) + off + L * c) / mu) * UP", "rest = 0.0"),
    ("(norm(w - u) + rest) * UP", "norm(w - u) / 3"),
    ("- (s * t).sum()", "+ (s * t).sum()"),
    ("rise = (slope * d).sum()", "rise = -(slope * d).sum()"),
    ("- (y * problem.v).sum()) / UP", "+ (y * problem.v).sum()) / UP"),
    ("1 / (1 + exp(v))", "exp(v) / (1 + exp(v))"),
    ("w * (means - y", "w * (means + y"),
    ("return low, (norm(high - low)", "return high + 1, (norm(high - low)"),
    ("self.drafts[key][2] += w", "self.drafts[key][2] += 0"),
]


@pytest.mark.parametrize("change", CHANGES, ids=[new for _, new in CHANGES])
def test_a_changed_formula_is_noticed(
    change: tuple[str, str], edges: list[tuple[tamper.Folder, str]]
) -> None:
    old, new = change
    text = SOURCE.read_text(encoding="utf-8")
    assert text.count(old) == 1
    module = ModuleType("changed")
    exec(compile(text.replace(old, new), "changed", "exec"), module.__dict__)
    check = module.__dict__["check"]
    assert any(check(f.problem, f.result)[0] != word for f, word in edges)


def test_what_is_not_convex_is_not_confirmed() -> None:
    convex = ccmac_check.convex
    convex(coo_array([[1.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(ccmac_check.Verdict, match="convex"):
        convex(coo_array([[1.0, 1.0], [1.0, 0.9999]]))


def test_no_contradiction_is_dropped(tmp_path: Path) -> None:
    """Rows r and 2r with the sides 3 and 3: without the second there is a solution."""
    problem, result = solved("contradiction")
    folder = tamper.Folder(tmp_path, problem, result)
    row = problem.agents[0].A[0]
    for name in ("x0", "x1", "x2"):
        folder.arrays[name] = row / (row @ row)
    folder.arrays["coupled"] = np.array([-1.0, 0.0]) / (row @ row)
    folder.head["status"] = "optimal"
    folder.head["claims"] = [{"kind": "error", "bound": 1e-9, "tol": 1e-6, "met": True}]
    folder.head["dropped"] = {"coupled": [1]}
    assert "dropped is violated" in folder.judged()[1]


def test_ill_conditioned_errors_are_sharp(tmp_path: Path) -> None:
    """Rows that differ by 1e-9: residuals in fractions bring the point as near as one likes."""
    f = SquaredDistance(1.0, [1.0, 2.0])
    agents = [ccmac.Agent(f, C=[[1.0, 1.0], [1.0, 1.0 + 2.0**-30]], c=[2.0, 2.0])] * 2
    problem = ccmac.Problem(agents, q=0)
    folder = tamper.Folder(tmp_path, problem, ccmac.solve(problem, "path", tol=1e-4))
    folder.arrays["x0"] = np.array([2.0, 2.0**-20])
    folder.head["claims"][0] |= {"bound": 1.0001 * 2.0**-20, "met": False}
    assert folder.judged() == ("not confirmed", "no claim says that it is optimal")
    folder.head["status"] = "converged"
    assert folder.judged()[0] == "confirmed"
    folder.head["claims"][0]["bound"] = 0.9999 * 2.0**-20
    assert folder.judged()[0] == "not confirmed"


def test_exact_products_are_exact() -> None:
    random = np.random.default_rng(0)
    M = random.standard_normal((5, 7)) * 10.0 ** random.integers(-200, 200, (5, 7))
    x = random.standard_normal(7) * 10.0 ** random.integers(-200, 200, 7)
    found = ccmac_check.product(coo_array(M), ccmac_check.exact(x))
    for row, v in zip(M, found, strict=True):
        assert v == sum(Fraction(a) * Fraction(b) for a, b in zip(row, x, strict=True))


def test_a_grid_of_agents_without_rows() -> None:
    problem = ccmac.Problem([ccmac.Agent(SquaredDistance(1.0, [1.0, 2.0])) for _ in range(2)], q=0)
    assert judged(problem, ccmac.solve(problem, "path"))[0] == "confirmed"
