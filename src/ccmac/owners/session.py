"""One owner's part of a run: its files, checked, and its links to the neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ccmac.network import Network, as_network
from ccmac.owners.absent import last_point, without
from ccmac.owners.status import RunStatus
from ccmac.results import Result, Solution
from ccmac.runtime import Runtime
from ccmac.runtime.averaging import Averaging, by_name
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.failure import one_line
from ccmac.runtime.leading import fingerprint
from ccmac.runtime.links import Links
from ccmac.runtime.owners import between_owners
from ccmac.runtime.tls import Identity
from ccmac.storage import owner


def stopped_by(runtime: Distributed, result: Result) -> str:
    """Who has stopped a run that was interrupted, for a line that goes on."""
    if result.status != "interrupted":
        return ""
    names = ", ".join(f"agent {i}" for i in runtime.stopped_by())
    return f"stopped by {names or 'somebody'}; "


@dataclass(frozen=True)
class Owner:
    """Everything that the two files say."""

    place: Path
    mine: owner.Mine
    public: owner.Public
    network: Network
    averaging: Averaging
    number: int  # in the public file, which may say that others are absent

    @classmethod
    def read(cls, file: Path) -> Owner:
        """Both files, checked."""
        mine = owner.read_mine(file)
        return cls.of(file, mine, owner.read_public(file.parent / mine.public))

    @classmethod
    def of(cls, file: Path, mine: owner.Mine, public: owner.Public) -> Owner:
        """With the network that the public file names."""
        network = as_network(public.network, public.agents)
        number = mine.agent
        if public.absent:
            mine, public, network = without(file, mine, public, network)
        return cls(file, mine, public, network, by_name(network, public.averaging), number)

    @property
    def kept(self) -> str | None:
        """The folder of checkpoints: without somebody it is another run."""
        folder = self.mine.checkpoint
        return folder and "-".join([folder, *(f"without-{name}" for name in self.public.absent)])

    def start(self, runtime: Runtime) -> Solution | None:
        """Where those who are left go on: at the last point that they have of the run of all."""
        if not self.public.absent or self.mine.checkpoint is None:
            return None
        return last_point(self.path(self.mine.checkpoint), self.number, self.public.q, runtime)

    def path(self, name: str) -> Path:
        """A path that the file names, relative to it."""
        return self.place.parent / name

    def links(self, patience: float | None = None) -> Links:
        """The connections to the neighbors, not yet made; one's own certificate is checked."""
        mine = self.mine
        public = self.public
        names = (mine.certificate, mine.key, mine.authority)
        certificate, key, authority = (str(self.path(name)) for name in names)
        listen = None if mine.listen is None else owner.address(self.place, mine.listen)
        facts = {
            "the public file": public.digest(),
            "the network": owner.short(fingerprint(self.network, self.averaging).encode()),
        }
        identity = Identity(certificate, key, authority, public.revoked)
        ends = identity.check_own(public.certificate_name(mine.agent))
        links = Links(
            mine.agent,
            owner.neighbors_of(self.place, mine, public, self.network),
            listen,
            identity,
            facts,
            patience=patience or mine.patience,
            wait=mine.wait,
            names=[public.certificate_name(i) for i in range(public.agents)],
        )
        if ends:
            links.say(ends)
        return links

    @contextmanager
    def runtime(self, status: RunStatus, patience: float | None = None) -> Iterator[Distributed]:
        """The runtime of this owner, once all neighbors are there."""
        with self.links(patience) as links, status.of(links), one_line():
            links.start()
            status.note({"phase": "setup"})
            runtime = between_owners(links, self.network, self.averaging)
            runtime.watch = status.note
            yield runtime
            status.note({"phase": "done"})
