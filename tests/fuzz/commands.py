"""Command lines: options with values that make no sense."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ccmac.methods.registry import REGISTRY, available_methods
from fuzz.templates import Templates

NUMBERS = (
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "0x10",
    "1_0",
    "",
    " ",
    "1,5",
    "9" * 5000,
    "9" * 30,
    "true",
    "none",
    "²",
    "1e-320",
    "-0.0",
    "3.7",
    "18446744073709551616",
)
TEXTS = (
    "",
    " ",
    "x",
    "x" * 5000,
    "ü",
    "a=b",
    "=",
    "==",
    "--json",
    "-",
    "\n",
    "%s",
    "{}",
    "../..",
    "/dev/null/x",
    "auto",
    "ring:3",
    "grid:0x0",
    "grid:2x3",
    "grid:-1x4",
    "grid:9999999999x9",
    "erdos_renyi:nan:0",
    "erdos_renyi:2:0",
    "erdos_renyi:0.0:1",
    "erdos_renyi:0.5:" + "9" * 30,
    "random_regular:9:0",
    "random_regular:0:0",
    "random_regular:3:1",
    "x" * 300 + "/y",
    "\udcff",
)
COMMANDS = {
    "solve": (
        "--network",
        "--method",
        "--tol",
        "--realization",
        "--access",
        "--set",
        "--costs",
        "--max-iterations",
        "--max-seconds",
        "--warm-start",
        "--checkpoint",
        "--every",
        "--runtime",
        "--averaging",
        "--seed",
        "--out",
    ),
    "plan": (
        "--network",
        "--method",
        "--tol",
        "--costs",
        "--realization",
        "--access",
        "--set",
        "--averaging",
        "--rows",
    ),
    "geometry": ("--network", "--json"),
    "complexity": ("--network", "--tol", "--radius", "--energy-radius", "--method", "--set"),
    "suite": (),
    "data": (),
    "report": (),
    "optimality": ("--family",),
}


def command(rng: Random, place: Path, made: Templates) -> list[str]:
    """One command with one to three odd options; short where it would be accepted."""
    name = rng.choice(
        (
            "solve",
            "solve",
            "solve",
            "solve",
            "plan",
            "geometry",
            "complexity",
            "suite",
            "data",
            "report",
        )
    )
    if name in ("suite", "data"):
        inner = rng.choice(("list", "run", "status", "verify", "table", "figures", "path", "x", ""))
        words = [name, inner, *rng.sample(TEXTS, rng.choice((0, 1, 2)))]
        if inner == "path" or (inner == "run" and "smoke" in words):
            words[1] = "verify"
        return words
    if name == "report":
        return [name, rng.choice(TEXTS), "-o", str(place / "r.html")]
    words = [name, str(made.root / "dispatch") if rng.random() < 0.95 else rng.choice(TEXTS)]
    if rng.random() < 0.4 and name in ("solve", "plan", "complexity"):
        words += settings(rng)
    for option in rng.sample(COMMANDS[name], rng.choice((1, 1, 2))):
        words += [option, value(rng, option, place)]
    if name == "solve":
        more = ["--max-iterations", "30", "--max-seconds", "4"]
        words += [w for k, w in enumerate(more) if more[k - k % 2] not in words]
    return words


def settings(rng: Random) -> list[str]:
    """``--method M --set option=nonsense``."""
    method = rng.choice(sorted(REGISTRY))
    options = [option["name"] for option in available_methods()[method]["options"]] or ["inner"]
    words = ["--method", method]
    for name in rng.sample(options, min(len(options), rng.choice((1, 2)))):
        words += ["--set", f"{name}={rng.choice((*NUMBERS, *TEXTS))}"]
    return words


def value(rng: Random, option: str, place: Path) -> str:
    """Something for an option: a place, prices, a number or a text."""
    if option in ("--out", "--checkpoint", "--warm-start"):
        (place / "file").write_text("x")
        return rng.choice(
            (
                str(place / "result"),
                str(place / "file"),
                str(place / "file" / "x"),
                "/proc/new",
                "/dev/null",
                str(place / ("n" * 300)),
                "",
                str(place),
                "\x01",
            )
        )
    if option == "--costs":
        names = ("gradient", "round", "product", "x", "", "argmin")
        return ",".join(
            f"{rng.choice(names)}={rng.choice(NUMBERS)}" for _ in range(rng.choice((1, 3)))
        )
    return rng.choice(NUMBERS if rng.random() < 0.6 else TEXTS)
