"""Three owners, three processes, three CVXPY files with a budget in common."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.owners.own_file import run_own
from owners import finish, free_ports, start

pytest.importorskip("cryptography")

NAMES = ("north", "south", "west")
FILE = """
import json
import sys
from pathlib import Path
import cvxpy as cp
import numpy as np
import ccmac

read = []
sys.addaudithook(lambda event, given: read.append(str(given[0])) if event == "open" else None)
spend = cp.Variable(3, name="spend", nonneg=True)
reserve = cp.Variable(name="reserve")
wish = np.array({wish})
model = cp.Minimize(cp.sum_squares(spend - wish) + cp.norm1(spend) + cp.square(reserve - {level}))
limit = cp.norm(spend) <= 1 + reserve
agent = ccmac.cvx.Agent(
    model, [limit], coupled=[cp.sum(spend) - 1], shared={{"reserve": reserve}}, name="{name}"
)

def done(result):
    found = (spend.value.tolist(), float(reserve.value), float(limit.dual_value), read)
    Path(__file__).with_name("found.json").write_text(json.dumps(found))
"""


def wish(i: int) -> list[float]:
    return [1.0 + i, 2.0 - i, 0.5 * i]


def test_three_files_meet_in_the_joined_answer(tmp_path: Path) -> None:
    place = tmp_path / "budget"
    port = str(free_ports(1)[0] - 3)
    new = ["owners", "new", str(place), "--agents", ",".join(NAMES), "--port", port, "--cvxpy"]
    assert main(new) == 0
    for i, name in enumerate(NAMES):
        folder = place / name
        assert "ccmac.cvx.Agent" in (folder / "model.py").read_text()
        (folder / "model.py").write_text(FILE.format(wish=wish(i), level=0.1 * i, name=name))
        public = (folder / "public.toml").read_text().replace("q = 0", "q = 1")
        (folder / "public.toml").write_text('sense = "<="\n' + public.replace("1e-6", "1e-9"))
        (folder / f"me-{i}.toml").symlink_to("me.toml")
    ended = finish([start(place / name, i) for i, name in enumerate(NAMES)])
    assert [code for code, _, _ in ended] == [0] * 3, ended

    parts = [cp.Variable(3, nonneg=True) for _ in NAMES]
    z = cp.Variable()
    rows = [cp.norm(x) <= 1 + z for x in parts] + [cp.sum(cp.hstack(parts)) <= 3]
    terms = [
        cp.sum_squares(x - np.array(wish(i))) + cp.norm1(x) + cp.square(z - 0.1 * i)
        for i, x in enumerate(parts)
    ]
    cp.Problem(cp.Minimize(sum(terms)), rows).solve(cp.CLARABEL)
    for i, name in enumerate(NAMES):
        spend, reserve, dual, read = json.loads((place / name / "found.json").read_text())
        np.testing.assert_allclose(spend, parts[i].value, atol=1e-5)
        assert (reserve, dual) == pytest.approx(
            (float(z.value), float(rows[i].dual_value)), abs=1e-5
        )
        assert json.loads(ended[i][1])["status"] == "optimal"
        inside = [file for file in read if str(place) in file]
        assert any("me.toml" not in file for file in inside)
        assert all(file.startswith(str(place / name)) for file in inside), inside


def test_only_a_file_of_ones_own_is_executed(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    mistakes = {
        "agent = 3": "defines no agent",
        "import nothing_of_that_name": "line 1: ModuleNotFoundError",
        "raise SystemExit(0)": "line 1: SystemExit",
    }
    for text, words in mistakes.items():
        file.write_text(text)
        with pytest.raises(ccmac.errors.InputError, match=words) as error:
            run_own(file)
        assert "\n" not in str(error.value)
    os.chmod(file, stat.S_IRUSR | stat.S_IWOTH)
    with pytest.raises(ccmac.errors.InputError, match="chmod o-w"):
        run_own(file)
    with pytest.raises(ccmac.errors.InputError, match="cannot be read"):
        run_own(tmp_path / "none.py")
