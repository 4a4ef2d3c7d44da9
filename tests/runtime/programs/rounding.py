"""A rank that rounds differently from the others is refused before the first round."""

from __future__ import annotations

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.runtime import likeness, mpi


def main() -> None:
    usual, rank = likeness.arithmetic, mpi.MPI.COMM_WORLD.Get_rank()
    likeness.arithmetic = lambda: usual() + b"else" * (rank == 1)
    try:
        mpi.Mpi(Network.ring(4))
    except InputError as error:
        if rank == 0:
            print(error)
    else:
        raise AssertionError("not refused")


with mpi.guard():
    main()
