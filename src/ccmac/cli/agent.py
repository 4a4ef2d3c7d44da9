"""``ccmac agent``: one owner's part of a run.

Nobody needs the whole problem, and nobody talks to others than its neighbors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ccmac.cli.options import AsJson
from ccmac.cli.solution import try_out, write
from ccmac.cli.solve import exit_code, report
from ccmac.methods.registry import parse
from ccmac.network import Network, as_network
from ccmac.problem import Agent, Problem
from ccmac.results import Result
from ccmac.runtime.averaging import Averaging, by_name
from ccmac.runtime.failure import one_line
from ccmac.runtime.links import Credentials, Links
from ccmac.storage import owner
from ccmac.storage.files import try_file

EPILOG = (
    "Example: `ccmac agent me.toml`, at every owner, in any order\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached or an owner gone, 2 bad input, 3 infeasible, "
    "130 interrupted, 143 terminated."
)


@dataclass(frozen=True)
class Owner:
    """Everything that the two files say."""

    place: Path
    mine: owner.Mine
    public: owner.Public
    network: Network
    averaging: Averaging

    @classmethod
    def read(cls, file: Path) -> Owner:
        """Both files, checked."""
        mine = owner.read_mine(file)
        public = owner.read_public(file.parent / mine.public)
        network = as_network(public.network, public.agents)
        return cls(file, mine, public, network, by_name(network, public.averaging))

    def path(self, name: str) -> Path:
        """A path that the file names, relative to it."""
        return self.place.parent / name

    def links(self, patience: float | None) -> Links:
        """The connections to the neighbors, not yet made."""
        from ccmac.runtime.leading import fingerprint
        from ccmac.version import __version__

        mine = self.mine
        public = self.public
        files = [str(self.path(name)) for name in (mine.certificate, mine.key, mine.authority)]
        listen = None if mine.listen is None else owner.address(self.place, mine.listen)
        facts = {
            "the version of ccmac": __version__,
            "the public file": public.digest(),
            "the network": owner.short(fingerprint(self.network, self.averaging).encode()),
        }
        links = Links(
            mine.agent,
            owner.neighbors_of(self.place, mine, public, self.network),
            listen,
            Credentials(*files),
            facts,
            patience=patience or mine.patience,
            wait=mine.wait,
            names=[public.certificate_name(i) for i in range(public.agents)],
            revoked=public.revoked,
        )
        if ends := links.identity.check_own(public.certificate_name(mine.agent)):
            links.say(ends)
        return links


def show(
    file: Annotated[Path, typer.Argument(metavar="ME.TOML", help="Who I am; see the page owners.")],
    *,
    patience: Annotated[
        float | None,
        typer.Option("--patience", min=1, help="Seconds after which a silent owner ends the run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take part in a run with one agent; start it at every owner, in any order.

    A connection that drops is made again and nothing is lost. An owner that stays away ends the run
    everywhere; started again, the owners continue from the newest checkpoint that all have.
    """
    asked = Owner.read(file)
    mine = asked.mine
    public = asked.public
    method = parse(public.method, dict(public.options))
    agent = Agent.load(asked.path(mine.folder))
    problem = public.problem(mine.agent, agent)
    out = asked.path(mine.out)
    try_out(out)
    if mine.checkpoint is not None:
        try_file(asked.path(mine.checkpoint) / "try")
    with asked.links(patience) as links, one_line():
        links.start()
        result = _solve(asked, problem, method, links)
        write(out, result, public.agents, _record(asked))
    report(result, _record(asked), out, as_json, "start all owners again to continue")
    raise typer.Exit(exit_code(result))


def _solve(asked: Owner, problem: Problem, method: Any, links: Links) -> Result:
    from ccmac.api import solve
    from ccmac.runtime.owners import between_owners

    mine = asked.mine
    public = asked.public
    runtime = between_owners(links, asked.network, asked.averaging)
    checkpoint = None
    if mine.checkpoint is not None:
        checkpoint = {"path": asked.path(mine.checkpoint), "every": mine.every}
    return solve(
        problem,
        asked.network,
        method,
        public.tol,
        runtime=runtime,
        seed=public.seed,
        max_iterations=public.max_iterations,
        max_seconds=mine.max_seconds,
        checkpoint=checkpoint,
    )


def _record(asked: Owner) -> dict[str, Any]:
    public = asked.public
    return {
        "agent": asked.mine.agent,
        "size": {"n": public.agents, "q": public.q, "m": public.m},
        "public": public.digest(),
    }
