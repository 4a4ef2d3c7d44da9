"""Names of agents, rows and entries of z; mistakes in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import yaml

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.objectives import SquaredDistance

F = SquaredDistance()


def agent(**changes: Any) -> ccmac.Agent:
    blocks = {"A": np.eye(2), "B": np.ones((2, 1)), "b": [1.0, 2.0]} | changes
    return ccmac.Agent(F, **blocks)


def test_results_speak_in_names() -> None:
    agents = [agent(name=name) for name in ("north", "south")]
    problem = ccmac.Problem(agents, row_names=["power", "heat"], z_names=["reserve"])
    result = ccmac.solve(problem, tol=1e-8)
    assert list(result.named["x"]) == ["north", "south"]
    assert result.named["z"]["reserve"] == result.z[0]
    assert result.named["coupled"]["heat"] == result.multipliers.coupled[1]
    assert "multipliers   heat" in str(result)
    assert result.as_dict()["names"]["rows"] == ("power", "heat")


def test_nodes_of_a_graph_name_the_agents() -> None:
    graph = nx.Graph([("b", "a"), ("b", "c")])
    result = ccmac.solve(ccmac.Problem([agent() for _ in range(3)]), graph)
    assert list(result.named["x"]) == ["a", "b", "c"]


def test_names_decide_who_sits_where() -> None:
    """The graph's own order is another one than the agents'."""
    graph = nx.Graph([("b", "a"), ("b", "c")])
    problem = ccmac.Problem([agent(name=name) for name in "bca"])
    seen = ccmac.solve(problem, graph)
    assert list(seen.named["x"]) == ["b", "c", "a"]
    with pytest.raises(InputError, match="agent 0 is 'b' in the problem but 'a' in the"):
        ccmac.solve(problem, ccmac.Network.from_graph(graph))
    network = ccmac.Network.from_graph(graph, nodes=["b", "c", "a"])
    assert network.neighbors(0) == [1, 2]
    ccmac.solve(problem, network)
    with pytest.raises(InputError, match="no node 'd'"):
        ccmac.solve(ccmac.Problem([agent(name=name) for name in "abd"]), graph)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ccmac.Problem([agent()], sense="=<"), "row 0: '=<' is no sense; write '=='"),
        (lambda: ccmac.Problem([agent()], sense=["==", "="]), "row 1: '=' is no sense; write '=='"),
        (
            lambda: ccmac.Problem([agent(C=[[1, 0]], c=[1], C_sense="<", name="n")]),
            r"agent 0 \(n\), C_sense, row 0: '<' is no sense; write '==', '<=' or '>='$",
        ),
        (lambda: ccmac.Problem([agent()], sense=["<="]), "1 entries but there are 2 rows"),
        (
            lambda: ccmac.Problem([agent(C=[[1, 0]], c=[1], C_sense="!", name="n")]),
            r"agent 0 \(n\), C_sense, row 0: '!' is no sense",
        ),
        (
            lambda: ccmac.Problem([agent(lower=[0, 2], upper=1)]),
            r"agent 0, x\[1\]: lower bound 2 exceeds upper bound 1; exchange or widen",
        ),
        (lambda: ccmac.Problem([agent()], z_lower=1, z_upper=0), r"problem, z\[0\]: lower"),
        (
            lambda: ccmac.Problem([agent()], z_lower=1, z_upper=0, z_names=["price"]),
            r"problem, z\[0\] \('price'\): lower",
        ),
        (lambda: ccmac.Problem([agent(lower=np.inf)]), "entry 0 is inf, which nothing satisfies"),
        (lambda: ccmac.Problem([agent(lower=[1.0])]), "1 entries but there are 2; give one"),
        (lambda: ccmac.Problem([agent(lower=np.nan)]), "NaN"),
        (lambda: ccmac.Problem([agent(name="a"), agent(name="a")]), "'a' is used twice"),
        (lambda: ccmac.Problem([agent()], row_names=["x", "x"]), "row_names: the name 'x' is used"),
        (lambda: ccmac.Problem([agent()], z_names=["u", "v"]), "has 2 names but there are 1"),
        (lambda: ccmac.Problem([agent()], row_names="ab"), "give a list of 2 names"),
        (lambda: ccmac.Problem([agent(name=" ")]), "is no name"),
    ],
)
def test_a_mistake_is_one_line(build: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as told:
        build()
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (lambda c: c["sense"].__setitem__(0, "=<"), ["sense, row 0", "'=<' is no sense"], 2),
        (lambda c: c["z_lower"].__setitem__(0, 9.0), ["z[0]", "lower bound 9 exceeds"], 2),
        (lambda c: c["row_names"].__setitem__(1, "power"), ["'power' is used twice"], 2),
        (lambda c: c["z_upper"].__setitem__(0, -1.0), ["exchange or widen"], 2),
        (lambda c: None, ["infeasible: the coupled rows", "heat", "north", "south", "correct"], 3),
    ],
)
def test_a_mistake_on_disk_is_one_line_of_the_command(
    change: Any, words: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = {"lower": 0.0, "upper": 0.5}
    agents = [agent(name=name, b=[9.0, 9.0], **ends) for name in ("north", "south")]
    ccmac.Problem(
        agents, sense=["<=", "=="], row_names=["power", "heat"], z_lower=0.0, z_upper=2.0
    ).save(tmp_path / "case")
    page = tmp_path / "case" / "problem.yaml"
    table = yaml.safe_load(page.read_text())
    change(table["common"])
    page.write_text(yaml.safe_dump(table))
    assert main(["solve", str(tmp_path / "case")]) == code
    told = capsys.readouterr()
    said = told.err if code == 2 else " ".join(told.out.split())
    assert all(word in said for word in words), said
    assert told.err.count("\n") == (code == 2)
