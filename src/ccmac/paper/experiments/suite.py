"""A suite: a YAML file that states a family of runs, checked line by line.

The runs are the product  tol x data x agents x partition seeds x alpha x networks x methods.
A *profile* says how methods are set up: ``paper`` (the theorem's oracle, modelled rounds) or
``practical`` (planned, every round executed and charged).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.methods.registry import REGISTRY
from ccmac.methods.registry import parse as parse_method
from ccmac.network import FAMILIES, parse_family
from ccmac.paper import data
from ccmac.paper.data.files import find
from ccmac.paper.experiments.plugins import DATASETS, PROBLEMS
from ccmac.paper.experiments.runs import SuiteRun
from ccmac.storage.located import Located, parse
from ccmac.texts import MEGABYTE, cut, is_file, nearest, read_text, shown
from ccmac.vfl import LOSSES

MAX_RUNS = 100_000
BYTES = 4 * MEGABYTE
PROFILES = ("paper", "practical")
KEYS = (
    *("suite", "title", "profiles", "tol", "stop", "max_iterations", "max_seconds", "data"),
    *("agents", "partition_seeds", "alpha", "networks", "problem", "methods", "expect"),
)
PROBLEM = ("loss", "regularization", "label_owner", "shared_regularization", "l1", "delta")
LIMITS: Mapping[str, Callable[[Located], Any]] = {
    "max_iterations": lambda v: v.whole(1),
    "max_seconds": lambda v: v.number(0.0),
}
"""Options of a run; all others are the method's own."""
EXPECT = ("reached", "alpha_aff", "alpha_comm")
FILES = (".svm", ".txt", ".bz2", ".xz", ".libsvm", ".svmlight")


@dataclass(frozen=True)
class Suite:
    """The runs of one suite in one profile, and what is expected of them."""

    name: str
    title: str
    profile: str
    runs: tuple[SuiteRun, ...]
    expect: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""  # the bundled name or the path that it was read from


def bundled() -> dict[str, Path]:
    """Suites shipped with the package, by name."""
    folder = resources.files("ccmac.paper.experiments") / "suites"
    files = sorted(Path(str(entry)) for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {file.stem: file for file in files}


def load(name: str, profile: str | None = None, max_runs: int = MAX_RUNS) -> Suite:
    """A bundled suite by name, or a file; ``profile`` defaults to the first the suite offers."""
    known = bundled()
    path = known.get(name, Path(name))
    if not is_file(path):
        raise InputError(
            f"suite {shown(name)} is neither a file nor bundled; {nearest(name, known)}"
        )
    found = read(read_text(path, f"{path}, line 1", BYTES), str(path), profile, max_runs)
    return replace(found, file=name if name in known else os.path.realpath(path))


def read(text: str, file: str, profile: str | None = None, max_runs: int = MAX_RUNS) -> Suite:
    """Check the text of a suite and list its runs, at most ``max_runs`` of them."""
    root = parse(text, file)
    top = root.mapping(KEYS, needed=("suite", "data", "agents", "networks", "methods"))
    name = top["suite"].name()
    offered = top["profiles"].each(lambda p: p.text(PROFILES)) if "profiles" in top else PROFILES
    chosen = profile or ("practical" if "practical" in offered else offered[0])
    if chosen not in PROFILES:
        raise InputError(f"profile {shown(chosen)} is unknown; take one of {', '.join(PROFILES)}")
    if chosen not in offered:
        raise InputError(f"suite {cut(name)}: has no profile {chosen!r}; take {', '.join(offered)}")
    runs: dict[str, SuiteRun] = {}
    for run in _expand(top, name, chosen, max_runs):
        if run.id in runs:
            top["methods"].fail(f"the run {run.id} occurs twice; make the labels or lists distinct")
        runs[run.id] = run
    expect = _expect(top["expect"], chosen) if "expect" in top else {}
    title = top["title"].name() if "title" in top else name
    return Suite(name, title, chosen, tuple(runs.values()), expect, file)


def _expand(top: dict[str, Located], name: str, profile: str, max_runs: int) -> Iterator[SuiteRun]:
    def listed(key: str, read_one: Callable[[Located], Any], default: Any) -> tuple[Any, ...]:
        return top[key].each(read_one) if key in top else (default,)

    tolerances = listed("tol", lambda v: v.number(1e-15, 1.0), 1e-6)
    stop = top["stop"].text(("reference", "certificate")) if "stop" in top else "reference"
    iterations = top["max_iterations"].whole(1) if "max_iterations" in top else None
    seconds = top["max_seconds"].number(0.0) if "max_seconds" in top else None
    problem = _problem(top["problem"]) if "problem" in top else {}
    sets = top["data"].each(_data)
    agents = top["agents"].each(lambda v: v.whole(1))
    seeds = listed("partition_seeds", lambda v: v.whole(0), 0)
    alphas = listed("alpha", _alpha, None)
    whole = [name for name in sets if name in PROBLEMS]
    for key in ("alpha", "problem"):
        if whole and key in top:
            top[key].fail(f"{shown(whole[0])} is a problem, which {key} does not change")
    graphs = [g for entry in top["networks"].items() for g in _network(entry, agents)]
    entries = [m for entry in top["methods"].items() if (m := _method(entry, profile))]
    if not entries:
        top["methods"].fail(f"no method is left in the profile {profile}")
    lists = (tolerances, sets, agents, seeds, alphas, graphs, entries)
    if (count := math.prod(map(len, lists))) > max_runs:
        top["suite"].fail(
            f"the lists multiply to {count:,} runs, more than {max_runs:,}; shorten them, or raise "
            "the limit with --max-runs"
        )
    for tol, data_name, n, seed, alpha, graph, (method, label, options) in product(*lists):
        own = dict(options)
        named = f"{label} {tol:g}" if len(tolerances) > 1 else label
        yield SuiteRun(
            name,
            profile,
            data_name,
            n,
            seed,
            alpha,
            graph,
            method,
            named,
            tol,
            stop,
            problem,
            max_iterations=own.pop("max_iterations", iterations),
            max_seconds=own.pop("max_seconds", seconds),
            options=own,
        )


def _data(entry: Located) -> str:
    """A set's name as it will appear in records: a set that is not here gets its look-alike."""
    name = entry.name()
    if name.endswith(FILES) or "/" in name:
        if not is_file(name):
            entry.fail(f"the file {shown(name)} does not exist")
        return os.path.realpath(name)
    if name in DATASETS or name in PROBLEMS:
        return name
    try:
        record = data.resolve(name)
    except InputError as error:
        entry.fail(str(error))
    short = record.aliases[0] if record.aliases else record.name
    if name.endswith("-like") or find(record) is None:
        return f"{short}-like"
    return short


def _alpha(entry: Located) -> Any:
    if isinstance(entry.value, dict):
        fields = entry.mapping(("cross_factor",))
        if "cross_factor" not in fields:
            entry.fail("give cross_factor: a number of at least 1")
        return {"cross_factor": fields["cross_factor"].number(1.0)}
    word = entry.text(("uniform", "feature-norm"))
    return None if word == "uniform" else word


def _network(entry: Located, agents: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """``ring``, ``grid:2x4`` as on the command line, or a mapping, whose seeds may be a list."""
    if isinstance(entry.value, str):
        family, _, rest = entry.value.partition(":")
        if family not in FAMILIES:
            entry.text(FAMILIES)
        if FAMILIES[family].parameters and not rest:
            entry.fail(f"{family} needs its parameters, as in '- {_EXAMPLE[family]}'")
        found = [_parsed(entry)]
    else:
        pair = entry.mapping(FAMILIES)
        if len(pair) != 1:
            entry.fail("give one family per list entry")
        [(family, body)] = pair.items()
        found = list(_parameters(family, body))
    for network in found:
        if family == "grid" and set(agents) != {size := network["rows"] * network["cols"]}:
            entry.fail(f"the grid has {shown(size)} agents, the suite {shown(list(agents))}")
    yield from found


def _parsed(entry: Located) -> dict[str, Any]:
    try:
        return parse_family(entry.value)
    except InputError as error:
        entry.fail(str(error))


def _parameters(family: str, body: Located) -> Iterator[dict[str, Any]]:
    kinds = FAMILIES[family].parameters
    if not kinds:
        body.fail(f"{family} takes no parameters; write '- {family}'")
    needed = [key for key in kinds if key != "seed"]
    fields = body.mapping([*needed, "seeds"] if "seed" in kinds else needed)
    if not fields.keys() >= set(needed):
        body.fail(f"give {' and '.join(needed)}, as in '{_EXAMPLE[family]}'")
    numbers = {
        key: fields[key].number(0.0, 1.0) if kinds[key] is float else fields[key].whole(1)
        for key in needed
    }
    seeds = fields["seeds"].each(lambda v: v.whole(0)) if "seeds" in fields else (0,)
    for seed in seeds:
        yield {"family": family, **numbers} | ({"seed": seed} if "seed" in kinds else {})


_EXAMPLE = {
    "grid": "grid: {rows: 2, cols: 4}",
    "erdos_renyi": "erdos_renyi: {p: 0.5, seeds: [0, 1]}",
    "random_regular": "random_regular: {degree: 4, seeds: [0, 1]}",
}


def _problem(entry: Located) -> dict[str, Any]:
    def read(key: str, value: Located) -> Any:
        if key == "loss":
            return value.text(LOSSES)
        return value.whole(0) if key == "label_owner" else value.number(0.0)

    return {key: read(key, value) for key, value in entry.mapping(PROBLEM).items()}


def _method(entry: Located, profile: str) -> tuple[str, str, dict[str, Any]] | None:
    if isinstance(entry.value, str):
        return _known(entry), entry.text(), {}
    fields = entry.mapping(("name", "label", "only", "options", *PROFILES))
    if "name" not in fields:
        entry.fail("give the method's name")
    name = _known(fields["name"])
    only = fields["only"].text(PROFILES) if "only" in fields else profile
    if only != profile:
        return None
    options: dict[str, Any] = {}
    for key in ("options", profile):
        if key in fields:
            options |= {
                k: LIMITS[k](v) if k in LIMITS else v.value
                for k, v in fields[key].mapping().items()
            }
    try:
        parse_method(name, {k: v for k, v in options.items() if k not in LIMITS})
    except InputError as error:
        fields.get("options", fields.get(profile, entry)).fail(str(error))
    return name, fields["label"].name() if "label" in fields else name, options


def _known(entry: Located) -> str:
    name = entry.text()
    if name not in REGISTRY and name != "auto":
        entry.fail(f"method {shown(name)} is unknown; {nearest(name, ['auto', *REGISTRY])}")
    return name


def _expect(entry: Located, profile: str) -> dict[str, Any]:
    """Expectations of one profile: ``reached: all`` or a count, slopes as [low, high]."""
    fields = entry.mapping((*EXPECT, *PROFILES))
    own = {key: value for key, value in fields.items() if key in EXPECT}
    if profile in fields:
        own |= fields[profile].mapping(EXPECT)
    out: dict[str, Any] = {}
    for key, value in own.items():
        if key == "reached":
            out[key] = "all" if value.value == "all" else value.whole(0)
            continue
        ends = value.each(lambda v: v.number())
        if len(ends) != 2 or ends[0] > ends[1]:
            value.fail("give an interval, as in [0.95, 1.05]")
        out[key] = list(ends)
    return out
