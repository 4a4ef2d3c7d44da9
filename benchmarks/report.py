"""Everything `make bench` measures, as one page.

    python benchmarks/report.py [--write docs/benchmarks.md] [--repeat 5] [--data a9a mushrooms w8a]

Ridge regression (lambda = 1e-2) on vertically split data. Every figure is a ratio of process times
(median of ``--repeat`` runs in turn, after one that does not count) taken in this one run, or a
count of the ledger. Solvers that CVXPY knows get the CC-MAC form

    minimize 1/(2N) ||z - y||^2 + lambda/2 ||w||^2   subject to   sum_i X_i w_i = z

and the joined one, ||X w - y||^2 in place of ||z - y||^2 and no z, both compiled beforehand (its
time is not counted), at their default accuracy; beside the ratio stands the distance of their
weights from the solution.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

import ccmac
from ccmac.paper import data

LAMBDA = 1e-2
GENERAL = ("OSQP", "SCS", "CLARABEL", "PIQP")
PHASES = ("setup", "solve", "monitor")
PAGE = """# Benchmarks

`make bench` writes this page (`benchmarks/report.py`). Ridge regression on vertically split data,
certified to 1e-6 without a reference, `auto`, one process for all agents. Ratios of process
times, medians of {repeat} in turn; another machine gives others. Counts are exact.
{machine}, {versions}.

## The whole solve over solvers of the joined table

lsqr: SciPy's, atol = btol = 1e-9. Ridge: scikit-learn's, solver lsqr, tol 1e-9. MB: sent by the
busiest agent. Setup: what `ccmac.plan` takes of the solve's process time.

{ridge}

## General solvers over the whole solve

Through CVXPY, compilation apart, at their default accuracy: on the CC-MAC form with z, and on the
joined one without; in brackets the relative distance of their weights from the solution.

{general}

## Growth

Of the process time of the whole solve, on generated data.

{grown}
"""


def seconds(work: Callable[[], object]) -> float:
    """Process time of a call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def in_turn(works: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """Medians of the process times of several calls, made one after the other again and again."""
    runs = [[seconds(work) for work in works] for _ in range(repeat + 1)]
    return [statistics.median(column) for column in zip(*runs[1:], strict=True)]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def solution(X: Any, y: np.ndarray) -> np.ndarray:
    """The weights, by a dense factorization."""
    N, d = X.shape
    return np.linalg.solve((X.T @ X).toarray() / N + LAMBDA * np.eye(d), X.T @ y / N)


def agents(name: str) -> int:
    """On the ring of the paper's experiment."""
    return 16 if name == "a8a" else 8


def certified(problem: Any, network: Any) -> Callable[[], object]:
    """Our solve, to 1e-6 without a reference."""
    return lambda: ccmac.solve(problem, network, tol=1e-6, progress=False)


def against_ridge(names: Sequence[str], repeat: int) -> Iterator[list[str]]:
    """The whole certified solve over solvers of the joined least squares problem."""
    from sklearn.linear_model import Ridge

    for name in names:
        found = data.load(name, fallback=True)
        n = agents(name)
        X = sp.csr_array(found.X)
        y = found.y
        problem = ccmac.vfl.problem(X, y, n)
        network = ccmac.Network.ring(n)
        root = np.sqrt(len(y))
        A = X / root
        right = y / root
        model = Ridge(alpha=LAMBDA * len(y), fit_intercept=False, solver="lsqr", tol=1e-9)
        matrix = sp.csr_matrix(X)
        bare = partial(lsqr, A, right, damp=LAMBDA**0.5, atol=1e-9, btol=1e-9)
        works = [certified(problem, network), partial(ccmac.plan, problem, network)]
        times = in_turn([*works, bare, partial(model.fit, matrix, y)], repeat)
        ledger = ccmac.solve(problem, network, tol=1e-6, progress=False).ledger
        rounds = " + ".join(str(ledger.of(phase)["rounds"]) for phase in PHASES)
        yield [
            found.name,
            str(n),
            *(f"{times[0] / theirs:.1f}" for theirs in times[2:]),
            f"{times[1] / times[0]:.0%}",
            rounds,
            f"{ledger.total('bytes') / 1e6:.1f}",
        ]


def against_general(names: Sequence[str], repeat: int) -> Iterator[list[str]]:
    """Solvers of both forms over our certified solve."""
    import cvxpy as cp

    for name in names:
        found = data.load(name, fallback=True)
        n = agents(name)
        X = sp.csr_array(found.X)
        y = found.y
        exact = solution(X, y)
        ours = certified(ccmac.vfl.problem(X, y, n), ccmac.Network.ring(n))
        w = cp.Variable(X.shape[1])
        z = cp.Variable(X.shape[0])
        ridge = LAMBDA / 2 * cp.sum_squares(w)
        coupled = cp.sum_squares(z - y) / (2 * len(y)) + ridge
        joined = cp.sum_squares(X @ w - y) / (2 * len(y)) + ridge
        forms = {
            "CC-MAC": cp.Problem(cp.Minimize(coupled), [X @ w == z]),
            "joined": cp.Problem(cp.Minimize(joined)),
        }
        for form, stated in forms.items():
            cells = [f"{found.name}, {form}"]
            for solver in GENERAL:
                if solver not in cp.installed_solvers():
                    cells.append("not installed")
                    continue
                compiled, chain, inverse = stated.get_problem_data(solver, solver_opts={})
                theirs = partial(chain.solve_via_data, stated, compiled)
                long, short = in_turn([theirs, ours], repeat)
                stated.unpack_results(theirs(), chain, inverse)
                off = np.linalg.norm(np.asarray(w.value) - exact) / np.linalg.norm(exact)
                cells.append(f"{long / short:.1f} ({off:.0e})")
            yield cells


def drawn(rows: int, columns: int, filled: float) -> tuple[Any, np.ndarray]:
    """A sparse regression problem of some size."""
    random = np.random.default_rng(rows + columns)
    X = sp.random_array((rows, columns), density=filled, format="csr", rng=random)
    return X, X @ random.standard_normal(columns) + 0.1 * random.standard_normal(rows)


def processor() -> str:
    """The model, where Linux tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def growth(repeat: int) -> Iterator[list[str]]:
    """Process time when one size doubles twice, and the exponent between the ends."""
    shapes = {
        "agents, 1,000 rows and 2,000 columns, 5 % filled, random 4-regular": [
            (n, 1_000, 2_000, 0.05) for n in (16, 128, 1_024)
        ],
        "rows, 200 columns with 10 entries a row, ring of 8": [
            (8, rows, 200, 0.05) for rows in (10_000, 40_000, 160_000)
        ],
        "entries, 20,000 rows and 400 columns, ring of 8": [
            (8, 20_000, 400, filled) for filled in (0.01, 0.04, 0.16)
        ],
    }
    for what, cases in shapes.items():
        times = []
        sizes = []
        for n, rows, columns, filled in cases:
            X, y = drawn(rows, columns, filled)
            network = (
                ccmac.Network.ring(n) if n == 8 else ccmac.Network.random_regular(n, 4, seed=0)
            )
            times += in_turn([certified(ccmac.vfl.problem(X, y, n), network)], repeat)
            sizes.append({"a": n, "r": rows, "e": X.nnz}[what[0]])
        slope = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
        shown = ", ".join(f"{size:,}" for size in sizes)
        ratios = ", ".join(f"{t / times[0]:.1f}" for t in times)
        yield [what, shown, ratios, f"{slope:.2f}"]


def page(names: Sequence[str], repeat: int) -> str:
    """The whole page."""
    versions = ", ".join(
        f"{name} {version}"
        for name, version in (
            ("Python", platform.python_version()),
            ("NumPy", np.__version__),
            ("SciPy", scipy.__version__),
            ("ccmac", ccmac.__version__),
        )
    )
    ridge = table(
        [
            "data",
            "agents",
            "over lsqr",
            "over Ridge",
            "setup",
            "rounds: setup + solve + monitor",
            "MB",
        ],
        against_ridge(names, repeat),
    )
    few = min(repeat, 3)
    general = table(["data", *(s.title() for s in GENERAL)], against_general(names, few))
    grown = table(["what grows", "sizes", "time, first = 1", "exponent"], growth(few))
    return PAGE.format(
        repeat=repeat,
        machine=processor(),
        versions=versions,
        ridge="\n".join(ridge),
        general="\n".join(general),
        grown="\n".join(grown),
    )


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=["a9a", "mushrooms", "w8a", "a8a"])
    options = parser.parse_args()
    text = page(options.data, options.repeat)
    if options.write is None:
        print(text)
    else:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
