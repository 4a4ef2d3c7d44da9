"""From nothing to a certified result between three processes: two commands, no file edited."""

from __future__ import annotations

import configparser
import signal
import stat
import time
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.linear_model import Ridge

import ccmac
from ccmac.cli.main import main
from ccmac.owners.own_file import run_own
from ccmac.vfl.files import read_model
from owners import command, finish, free_ports

pytest.importorskip("cryptography")


def fresh_port() -> str:
    """The first of four that are free, most likely."""
    return str(free_ports(1)[0] - 4)


def commented(file: Path) -> bool:
    """Every value of a file of settings has a comment, but for addresses of neighbors."""
    text = file.read_text()
    tomllib.loads(text)
    lines = text.partition("neighbors]")[0].splitlines()
    return all("#" in line for line in lines if "=" in line)


def test_owners(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["north", "south", "west"]
    place = tmp_path / "supply"
    new = ["owners", "new", str(place), "--agents", ",".join(names), "--port", fresh_port()]
    assert main(new) == 0
    assert main(["owners", "try", str(place)]) == 0
    said = capfd.readouterr().out
    agents = [run_own(place / name / "model.py")["agent"] for name in names]
    whole = ccmac.solve(ccmac.Problem(agents, q=0), progress=False)
    for i, name in enumerate(names):
        folder = place / name
        assert f"{name} | cross-direct: optimal" in said
        with np.load(folder / "result" / f"solution-{i:04d}-{i:04d}.npz") as found:
            np.testing.assert_allclose(found[f"x{i}"], whole.x[i], rtol=1e-9)
        assert commented(folder / "me.toml")
        assert commented(folder / "public.toml")
        assert len((folder / "README.md").read_text().splitlines()) <= 12
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
    assert main(new) == 2
    assert "is there already" in capfd.readouterr().err


def test_parties_who_take_no_connections(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["bank", "shop", "clinic"]
    place = tmp_path / "credit"
    more = ["--parties", ",".join(names), "--relay", f"127.0.0.1:{fresh_port()}"]
    assert main(["vfl", "new", str(place), *more]) == 0
    assert not any("listen" in (place / name / "me.toml").read_text() for name in names)
    assert main(["owners", "try", str(place)]) == 0
    assert capfd.readouterr().out.count("have met") == len(names)
    as_joined(place, names)
    assert all(commented(place / name / "me.toml") for name in names)


def test_a_killed_party_ends_the_run_and_all_continue(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """kill -9 of one of two after its first checkpoint; then both are started again."""
    names = ["bank", "shop"]
    place = tmp_path / "credit"
    new = ["vfl", "new", str(place), "--parties", ",".join(names), "--port", fresh_port()]
    assert main(new) == 0
    for name in names:
        file = place / name / "me.toml"
        text = file.read_text().replace("every = 50", "every = 1")
        text = text.replace("patience = 60.0", "patience = 2.0")
        file.write_text(text.replace("tol = 1e-6", 'method = "cross-apapc"\ntol = 1e-10'))
    jobs = {name: command("vfl", "party", str(place / name / "me.toml")) for name in names}
    deadline = time.monotonic() + 60
    while not list((place / "shop" / "state").glob("state-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.005)
    jobs["shop"].kill()
    ended = finish(list(jobs.values()))
    assert [code for code, _, _ in ended] == [1, -signal.SIGKILL], ended
    assert "agent 1: has not been heard of for 2 s" in ended[0][2]
    capfd.readouterr()
    assert main(["owners", "try", str(place)]) == 0
    assert capfd.readouterr().out.count("continues after iteration") == len(names)
    as_joined(place, names)


def as_joined(place: Path, names: list[str]) -> None:
    """The parties' coefficients are those of the joined table."""
    tables = [pd.read_csv(place / name / "table.csv", index_col="id") for name in names]
    y = tables[0].pop("y")
    X = pd.concat(tables, axis=1)
    joined = Ridge(0.01 * len(X)).fit(X / X.std(ddof=0), y)
    parts = [read_model(place / name / "result" / "model.json").coef[:, 0] for name in names]
    np.testing.assert_allclose(
        np.concatenate(parts) * X.std(ddof=0), joined.coef_, rtol=1e-4, atol=1e-6
    )


DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_compose_file_and_the_units_fit_what_is_made(tmp_path: Path) -> None:
    """Three owners and a relay: every folder, file, address and command is there."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    names = [name for name in services if name != "relay"]
    new = ["owners", "new", str(tmp_path / "supply"), "--agents", ",".join(names)]
    assert main([*new, "--relay", "relay:7100"]) == 0
    assert len(names) == 3
    for name, service in services.items():
        [volume] = service["volumes"]
        here, _, there = volume.partition(":")
        assert there == service["working_dir"]
        folder = tmp_path / here
        program, command, file, *_ = service["command"]
        assert program == "ccmac"
        settings = tomllib.loads((folder / file).read_text())
        if name == "relay":
            assert (command, settings["listen"]) == ("relay", "0.0.0.0:7100")
            assert service["expose"] == ["7100"]
        else:
            assert (command, folder.name) == ("agent", name)
            assert {n["address"] for n in settings["neighbors"].values()} == {"relay:7100"}
            assert "ports" not in service
    for unit, command in (("ccmac-agent@.service", "agent"), ("ccmac-relay.service", "relay")):
        parsed = configparser.ConfigParser(strict=False, interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment,method-assign]
        parsed.read(DEPLOY / unit)
        assert parsed["Service"]["ExecStart"].split()[1] == command
        assert {"Unit", "Service", "Install"} <= set(parsed)


def test_requests_are_signed_by_somebody_else(tmp_path: Path) -> None:
    place = tmp_path / "supply"
    assert main(["owners", "new", str(place), "--agents", "a,b", "--requests"]) == 0
    requests = [str(place / name / f"{name}.csr") for name in "ab"]
    assert main(["keys", "sign", str(tmp_path / "authority"), *requests]) == 0
    for name in "ab":
        found = sorted(file.name for file in (place / name).iterdir())
        assert {f"{name}.key", f"{name}.crt", f"{name}.csr"} <= set(found)


@pytest.mark.parametrize(
    ("agents", "says"),
    [("a", "at least two names"), ("a,a", "cannot be used"), ("a,../b", "cannot be used")],
)
def test_names_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], agents: str, says: str
) -> None:
    assert main(["owners", "new", str(tmp_path / "x"), "--agents", agents]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
