"""``ccmac data list | verify | path``."""

from __future__ import annotations

import json
from pathlib import Path

import platformdirs
import pytest
from typer.testing import CliRunner, Result

from ccmac.cli.data import app
from ccmac.errors import InputError
from ccmac.paper.data import RECORDS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A $CCMAC_DATA with a damaged a1a and nothing else."""
    monkeypatch.setenv("CCMAC_DATA", str(tmp_path))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda app: tmp_path / "cache" / app)
    (tmp_path / "a1a").write_bytes(b"1 1:1\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_list_shows_every_set(folder: Path) -> None:
    shown = run("list")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert len(lines) == 1 + len(RECORDS)
    assert lines[1].split()[:5] == ["a1a", "1,605", "123", "6", "present"]
    assert lines[1].split()[-1] == str(folder / "a1a")
    assert "not on this machine" in lines[2]


def test_verify_tells_a_bad_file_and_fails(folder: Path) -> None:
    told = run("verify")
    assert told.exit_code == 1
    assert "a1a is not a1a (sha256" in told.stdout
    assert run("verify", "a9a").exit_code == 0
    assert json.loads(run("verify", "a1a", "--json").stdout)[0]["state"] == "bad"


@pytest.mark.parametrize("arguments", [("path", "a7a"), ("verify", "a7a"), ("path", "a9a-like")])
def test_a_bad_name_is_bad_input(folder: Path, arguments: tuple[str, ...]) -> None:
    told = run(*arguments)
    assert isinstance(told.exception, InputError)
    assert told.exception.exit_code == 2
    assert "\n" not in str(told.exception)
