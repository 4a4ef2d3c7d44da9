"""Starting MPI jobs from tests: bounded in time, skipped with the reason where MPI cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
PROGRAMS = HERE / "runtime" / "programs"
Job = subprocess.CompletedProcess[str]


class Launcher:
    """Starts ``mpiexec -n ranks python program arguments``; nothing outlives the test."""

    def __init__(self, mpiexec: str) -> None:
        self.mpiexec = mpiexec
        self.programs = PROGRAMS
        self._started: list[subprocess.Popen[str]] = []

    def start(self, ranks: int, *command: str) -> subprocess.Popen[str]:
        """Start a job in a process group of its own."""
        paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        job = subprocess.Popen(
            [self.mpiexec, "-n", str(ranks), sys.executable, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(job)
        return job

    def run(self, ranks: int, program: str, *arguments: str, timeout: float = 60.0) -> Job:
        """Run one of ``programs/`` to its end; a job past its time is a failure of the test."""
        job = self.start(ranks, str(PROGRAMS / program), *arguments)
        return self.finish(job, timeout)

    def finish(self, job: subprocess.Popen[str], timeout: float) -> Job:
        """Wait for the end of a job."""
        try:
            output, errors = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self._end(job)
            output, errors = job.communicate()
            pytest.fail(f"the job hung for {timeout:g} s\n{output}\n{errors}")
        return subprocess.CompletedProcess(job.args, job.returncode, output, errors)

    def _end(self, job: subprocess.Popen[str]) -> None:
        # The group is the job's own: start_new_session made it.
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()

    def close(self) -> None:
        """End what a failing test left behind."""
        for job in self._started:
            self._end(job)
            for stream in (job.stdout, job.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture(scope="session")
def working_mpi(mpiexec: str) -> str:
    """The launcher, once it has been seen to start two ranks."""
    launcher = Launcher(mpiexec)
    check = "from mpi4py import MPI; assert MPI.COMM_WORLD.Get_size() == 2"
    try:
        job = launcher.start(2, "-c", check)
        _, errors = job.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("MPI cannot start here: two ranks did not come up within 60 s")
    finally:
        launcher.close()
    if job.returncode:
        reason = (errors.strip().splitlines() or ["no message"])[-1]
        pytest.skip(f"MPI cannot start here: {reason}")
    return mpiexec


@pytest.fixture
def mpi(working_mpi: str) -> Iterator[Launcher]:
    """Starts MPI jobs."""
    launcher = Launcher(working_mpi)
    yield launcher
    launcher.close()


@pytest.fixture
def mpi_run(mpi: Launcher) -> Callable[..., Job]:
    """Run a program that must succeed."""

    def run(ranks: int, program: str, *arguments: str, timeout: float = 60.0) -> Job:
        job = mpi.run(ranks, program, *arguments, timeout=timeout)
        assert job.returncode == 0, f"{job.stdout}\n{job.stderr}"
        return job

    return run
