"""Run every suite of the reproduction and write docs/reproduction.md with its figures.

    python benchmarks/reproduction.py run OUT --profile practical --jobs 2 [--resume]
    python benchmarks/reproduction.py page OUT --write

``run`` puts each suite in OUT/<suite>-<profile>;
``page`` is a pure function of OUT, of reproduction_page.md (the prose) and of paper_reports.yaml.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import yaml

from ccmac.paper.experiments.analysis import (
    Quartiles,
    TableRow,
    affine_fit,
    communication_fit,
    rows,
    two_factor_fit,
)
from ccmac.paper.experiments.figures import figures
from ccmac.paper.experiments.records import Record, read_records, read_suite
from ccmac.paper.experiments.runs import SuiteRun

mpl.use("Agg")
PROFILES = ("paper", "practical")
COUNTED = ("scaling", "robustness", "comparison", "a8a")  # the 302 runs
SUITES = {
    "paper": (*COUNTED, "scaling-tight", "ablation"),
    "practical": (*COUNTED, "ablation", "convex-sweep"),
}
PAPER = yaml.safe_load(Path(__file__).with_name("paper_reports.yaml").read_text(encoding="utf-8"))
CHIS = (1, 1.25, 1.5, 2, 3, 5, 8)
TEMPLATE = Path(__file__).with_name("reproduction_page.md")
PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
TEN = (  # suite, profile, data, chi, method: partition 0 on the ring
    ("robustness", "paper", "mushrooms", None, "cross-apapc"),
    ("comparison", "paper", "mushrooms", None, "cross-apapc"),
    ("comparison", "paper", "mushrooms", None, "joint-apapc"),
    ("comparison", "paper", "mushrooms", None, "condat-vu"),
    ("comparison", "practical", "mushrooms", None, "cross-apapc"),
    ("ablation", "paper", "mushrooms", 3, "separate 12"),
    ("scaling", "practical", "a9a", 3, "cross-apapc"),
    ("ablation", "paper", "mushrooms", 3, "separate 4"),
    ("ablation", "practical", "mushrooms", 3, "planned"),
    ("convex-sweep", "practical", "a1a", 2, "cross-continuation 0.1"),
)


# -- running ---------------------------------------------------------------------------------------
def run(out: Path, profile: str, jobs: int, only: Sequence[str], *, resume: bool) -> int:
    """Run the suites of a profile one after the other; the largest exit code."""
    worst = 0
    for suite in only or SUITES[profile]:
        command = ["ccmac", "suite", "run", suite, "--profile", profile, "--jobs", str(jobs)]
        command += ["--out", str(out / f"{suite}-{profile}"), *(["--resume"] if resume else [])]
        print("$", " ".join(command), flush=True)
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


# -- tables ----------------------------------------------------------------------------------------
def records(out: Path, suite: str, profile: str) -> list[Record]:
    """What has been recorded of a suite; empty when it was not run."""
    folder = out / f"{suite}-{profile}"
    return read_records(folder) if (folder / "suite.json").exists() else []


def number(value: float) -> str:
    """1,595 or 44.5; nothing for zero."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def quartiles(q: Quartiles) -> str:
    """Median, with quartiles where they differ."""
    if q.median != q.median:
        return "–"
    if q.low == q.high:
        return number(q.median)
    return f"{number(q.median)} [{number(q.low)}, {number(q.high)}]"


def rounds(row: TableRow) -> str:
    """Modelled rounds are marked; executed ones have their setup beside them."""
    if row.modelled:
        return quartiles(row.rounds) + " modelled"
    return f"{quartiles(row.rounds)} + {quartiles(row.setup_rounds)} setup"


def markdown(head: Sequence[str], body: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table; the first columns are text, the others numbers."""
    align = ["---" if k < text_columns else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, align, *body))


def slopes(out: Path) -> str:
    """Exponents of the scaling suite beside the paper's."""
    columns = [
        records(out, "scaling", "paper"),
        records(out, "scaling-tight", "paper"),
        records(out, "scaling", "practical"),
    ]

    def line(name: str, key: str, tell: Callable[[list[Record]], str]) -> list[str]:
        return [name, PAPER["slopes"][key], *(tell(c) if c else "not run" for c in columns)]

    def both(index: int) -> Callable[[list[Record]], str]:
        return lambda c: getattr(two_factor_fit(c), "text", lambda _: "–")(index)

    return markdown(
        ["", "paper reports", "paper profile", "tight interval", "practical"],
        [
            line("runs that reach 1e-6", "reached", lambda c: f"{reached(c)}/{len(c)}"),
            line("alpha_aff, chi >= 1.5", "alpha_aff", lambda c: interval(affine_fit(c))),
            line("alpha_comm", "alpha_comm", lambda c: interval(communication_fit(c))),
            line("two factors: chi", "chi", both(0)),
            line("two factors: sqrt(kappa_W)", "kappa", both(1)),
        ],
    )


def interval(fit: object) -> str:
    """An exponent with its block interval."""
    return "–" if fit is None else str(fit.text())  # type: ignore[attr-defined]


def reached(found: Sequence[Record]) -> int:
    """How many runs met their target."""
    return sum(r.reached for r in found)


def scaling_counts(out: Path) -> str:
    """Gradients and calls against chi on both sets, ring of 8."""
    body = []
    for data in ("a9a", "w8a"):
        for suite, profile, name in (
            ("scaling", "paper", "certificate"),
            ("scaling-tight", "paper", "tight"),
            ("scaling", "practical", "practical"),
        ):
            by_chi = {
                round(r.cross_factor, 6): r
                for r in records(out, suite, profile)
                if r.run.data == data and r.run.network["family"] == "ring"
            }
            if by_chi:
                modelled = any(r.modelled for r in by_chi.values())
                word = "modelled rounds" if modelled else "rounds, without setup"
                counts: dict[str, Callable[[Record], int]] = {
                    "gradients": lambda r: r.count("gradients"),
                    "calls": lambda r: r.count("affine"),
                    word: lambda r: r.rounds,
                }
                for unit, count in counts.items():
                    cells = [number(count(by_chi[c])) if c in by_chi else "–" for c in CHIS]
                    body.append([data, f"{name}: {unit}", *cells])
    return markdown(["data", "chi", *map(str, CHIS)], body, 2)


def robustness(out: Path) -> str:
    """Every row of the paper's table, then ours."""
    ours = {p: {plain(r): r for r in rows(records(out, "robustness", p))} for p in PROFILES}
    body = []
    for key, (gradients, affine, raw, modelled, error) in PAPER["robustness"].items():
        data, agents = key.split()
        body.append(
            [
                data,
                agents,
                "paper reports",
                "6/6",
                gradients,
                affine,
                raw,
                f"{modelled} modelled",
                error,
            ]
        )
        for profile in PROFILES:
            row = ours[profile].get(key)
            if row is not None:
                body.append(
                    [
                        row.data,
                        agents,
                        f"{profile} profile",
                        f"{row.reached}/{row.runs}",
                        quartiles(row.gradients),
                        quartiles(row.affine),
                        quartiles(row.raw),
                        rounds(row),
                        f"{row.worst_error:.2e}",
                    ]
                )
    head = [
        "data",
        "agents",
        "source",
        "runs",
        "gradients",
        "norm. affine",
        "raw",
        "rounds",
        "max error",
    ]
    return markdown(head, body, 3)


def plain(row: TableRow) -> str:
    """Data and agents; a generated look-alike stands for its model."""
    return f"{row.data.removesuffix('-like')} {row.agents}"


def methods(*suites: str) -> Callable[[Path], str]:
    """One row a set, method and profile, after the paper's own where it gives one."""

    def table(out: Path) -> str:
        body = []
        for suite in suites:
            ours = {
                p: {(plain(r), r.label): r for r in rows(records(out, suite, p))} for p in PROFILES
            }
            for key in dict.fromkeys(k for p in PROFILES for k in ours[p]):
                (data, agents), label = key[0].split(), key[1]
                said = PAPER["comparison"].get(f"{key[0]} {label}")
                if said is not None:
                    body.append(paper_row(data, agents, label, *said))
                body += [method_row(ours[p][key], p) for p in PROFILES if key in ours[p]]
        head = [
            "data",
            "agents",
            "method",
            "source",
            "runs",
            "gradients",
            "argmins",
            "norm. affine",
            "raw",
            "rounds",
        ]
        return markdown(head, body, 4)

    return table


def paper_row(
    data: str, agents: str, label: str, work: str, affine: str, rounds_: str
) -> list[str]:
    """What the paper says of one method; its outer iterations are argmins for the ADMM kind."""
    by_argmin = label in ("tracking-admm", "dpmm")
    units = ["", work] if by_argmin else [work, ""]
    shown = f"{rounds_} modelled" if rounds_ != "–" else "–"
    return [data, agents, label, "paper reports", "", *units, affine, "–", shown]


def method_row(row: TableRow, profile: str) -> list[str]:
    """Counts of one method; units it does not use stay empty."""
    work = [quartiles(q) if q.high > 0 else "" for q in (row.gradients, row.argmins, row.affine)]
    return [
        row.data,
        str(row.agents),
        row.label,
        profile,
        f"{row.reached}/{row.runs}",
        *work,
        quartiles(row.raw),
        rounds(row),
    ]


def sweep(out: Path) -> str:
    """Counts against the accuracy asked for, medians over the runs."""
    found = records(out, "convex-sweep", "practical")
    body = []
    for tol in dict.fromkeys(r.run.tol for r in found):
        group = [r for r in found if r.run.tol == tol]
        [row] = rows(group)
        counts = (row.gradients, row.affine, row.rounds, row.setup_rounds)
        body.append([f"{tol:g}", f"{row.reached}/{row.runs}", *map(quartiles, counts)])
    return markdown(["tol", "runs", "gradients", "affine", "rounds", "setup rounds"], body)


def times(out: Path) -> str:
    """What the runs of the suites took, added up."""

    def seconds(suite: str, profile: str) -> float | None:
        found = records(out, suite, profile)
        return sum(float(r.summary["elapsed"]) for r in found) if found else None

    def cell(taken: float | None) -> str:
        return "" if taken is None else clock(taken)

    suites = dict.fromkeys((*SUITES["paper"], *SUITES["practical"]))
    body = [[suite, *(cell(seconds(suite, p)) for p in PROFILES)] for suite in suites]
    totals = [[seconds(suite, p) for suite in COUNTED] for p in PROFILES]
    whole = ["" if None in t else clock(sum(filter(None, t))) for t in totals]
    body.append(["**the 302 runs**", *whole])
    return markdown(["suite", *(f"{p} profile" for p in PROFILES)], body)


def clock(seconds: float) -> str:
    """3 min 14 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def source(out: Path) -> str:
    """Which code made the records."""
    made: dict[str, set[str]] = {}
    for folder in sorted(out.iterdir()):
        if (folder / "suite.json").exists():
            for record in read_records(folder, read_suite(folder)):
                provenance = record.summary["provenance"]
                key = f"ccmac {provenance['ccmac']}, source {provenance.get('source', 'unknown')}"
                made.setdefault(key, set()).add(folder.name)
    return "\n".join(f"- {key}: {', '.join(sorted(names))}" for key, names in made.items())


def counted(out: Path) -> str:
    """How many of the 302 runs reached their target, by suite and profile."""
    body = []
    totals = dict.fromkeys(PROFILES, 0)
    for suite in COUNTED:
        cells = []
        for profile in PROFILES:
            found = records(out, suite, profile)
            totals[profile] += reached(found)
            cells.append(f"{reached(found)}/{len(found)}")
        body.append([suite, *cells])
    body.append(["**all**", *(f"{totals[p]}/302" for p in PROFILES)])
    return markdown(["RelErr <= 1e-6", *(f"{p} profile" for p in PROFILES)], body)


def wanted(found: Sequence[Record] | Sequence[SuiteRun], entry: tuple[Any, ...]) -> Any:
    """The record, or run, that a line of ``TEN`` names."""
    _, _, data, chi, label = entry
    for one in found:
        run = one.run if isinstance(one, Record) else one
        alpha = run.alpha["cross_factor"] if isinstance(run.alpha, dict) else None
        place = (run.network["family"], run.partition_seed, run.agents < 16)
        if (run.data, alpha, run.label) == (data, chi, label) and place == ("ring", 0, True):
            return one
    raise SystemExit(f"no run of {entry}")


def ten_row(entry: tuple[Any, ...], record: Record) -> list[str]:
    """One line of the ten records."""
    units = ("gradients", "affine", "raw")
    counts = [number(record.count(unit)) for unit in units]
    chi = "" if entry[3] is None else f"{entry[3]:g}"
    kind = "modelled" if record.modelled else "executed"
    return [*entry[:3], chi, entry[4], *counts, f"{number(record.rounds)} {kind}"]


def ten(out: Path) -> str:
    """Ten records by name."""
    body = [ten_row(entry, wanted(records(out, *entry[:2]), entry)) for entry in TEN]
    head = ["suite", "profile", "data", "chi", "method", "gradients", "norm. affine", "raw"]
    return markdown([*head, "rounds"], body, 5)


TABLES: dict[str, Callable[[Path], str]] = {
    "source": source,
    "counted": counted,
    "ten": ten,
    "slopes": slopes,
    "scaling": scaling_counts,
    "robustness": robustness,
    "comparison": methods("comparison", "a8a"),
    "ablation": methods("ablation"),
    "sweep": sweep,
    "times": times,
}


MARK = re.compile(r"<!-- (?P<kind>table|figure): (?P<what>[^>]*?) -->")
NOTE = "<!-- generated by `make reproduce` from benchmarks/reproduction_page.md; do not edit -->"


def written(out: Path, images: Path) -> str:
    """The page: the template with its tables, and its figures drawn into ``images``."""

    def put(match: re.Match[str]) -> str:
        if match["kind"] == "table":
            return f"{match[0]}\n\n{TABLES[match['what']](out)}\n\n<!-- end -->"
        folder, name = match["what"].split()
        return f"![{name}, {folder}](images/{drawn(out / folder, name, images)})"

    return NOTE + "\n\n" + MARK.sub(put, TEMPLATE.read_text(encoding="utf-8"))


def drawn(folder: Path, name: str, images: Path) -> str:
    """One figure of a suite that must show every method of its runs; its file name."""
    found = [r for r in read_records(folder) if r.finished]
    figure = figures(found)[name]
    if name.startswith("convergence"):
        [legend] = figure.legends
        shown = {text.get_text() for text in legend.get_texts()}
        lacking = {r.run.label for r in found} - shown
        if lacking:
            raise SystemExit(f"{folder}: {name} does not show {sorted(lacking)}")
    file = f"reproduction-{folder.name}-{name}.png"
    figure.savefig(images / file, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return file


def prose(page: str) -> str:
    """A page without what is generated in it: equal to the template's own prose."""
    text = page.removeprefix(NOTE + "\n\n")
    text = re.sub(r"(<!-- table: \w+ -->).*?<!-- end -->", r"\1", text, flags=re.DOTALL)
    return re.sub(r"!\[(\S+), (\S+)\]\(\S+\)", r"<!-- figure: \2 \1 -->", text)


def main() -> int:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="run the suites of a profile")
    runner.add_argument("out", type=Path)
    runner.add_argument("--profile", choices=PROFILES, default="practical")
    runner.add_argument("--jobs", type=int, default=2)
    runner.add_argument("--suites", default="", help="only these, separated by commas")
    runner.add_argument("--resume", action="store_true")
    page = commands.add_parser("page", help="print the page, or write it with its figures")
    page.add_argument("out", type=Path)
    page.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    if chosen.command == "run":
        chosen.out.mkdir(parents=True, exist_ok=True)
        only = [name for name in chosen.suites.split(",") if name]
        return run(chosen.out, chosen.profile, chosen.jobs, only, resume=chosen.resume)
    text = written(chosen.out, PAGE.parent / "images" if chosen.write else chosen.out)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
