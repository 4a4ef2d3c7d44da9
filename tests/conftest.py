"""Settings shared by all tests: Hypothesis profile, data report, skips with reasons."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest
from hypothesis import HealthCheck, settings

from launcher import mpi, mpi_run, working_mpi

__all__ = ["mpi", "mpi_run", "working_mpi"]  # fixtures for all folders

# The same examples on every run: a failure seen once can be seen again.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

LIBSVM_NAMES = ("a1a", "a8a", "a9a", "mushrooms", "w8a")


def libsvm_folder() -> Path | None:
    """Return the first folder that holds LIBSVM files: $CCMAC_DATA, then the user cache."""
    named = os.environ.get("CCMAC_DATA")
    folders = [Path(named)] if named else []
    folders.append(Path(platformdirs.user_cache_dir("ccmac")))
    for folder in folders:
        if any((folder / f"{n}{end}").is_file() for n in LIBSVM_NAMES for end in ("", ".bz2")):
            return folder
    return None


def data_note() -> str:
    """Say which data the tests see."""
    folder = libsvm_folder()
    return f"LIBSVM data: {folder or 'absent: generated look-alikes are used'}"


def pytest_report_header() -> str:
    return data_note()


def find_mpiexec() -> str | None:
    """Return the launcher beside this interpreter (the mpich wheel's), else that of the PATH.

    The wheel's comes first because mpi4py must be started by the launcher of the MPI it loads.
    """
    beside = Path(sys.executable).parent
    return shutil.which("mpiexec", path=str(beside)) or shutil.which("mpiexec")


def _has_mpi() -> bool:
    return importlib.util.find_spec("mpi4py") is not None and find_mpiexec() is not None


def _has_browser() -> bool:
    return any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "mpi": (_has_mpi, "needs mpi4py and mpiexec: pip install 'ccmac[mpi]'"),
    "data": (lambda: libsvm_folder() is not None, "needs LIBSVM files: set CCMAC_DATA"),
    "browser": (_has_browser, "needs chromium on the PATH"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and say why; shuffle the tests where that is asked for."""
    if "CCMAC_SHUFFLE" in os.environ:
        random.Random(os.environ["CCMAC_SHUFFLE"]).shuffle(items)
    for marker, (available, reason) in NEEDS.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and not available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def libsvm_data() -> Path:
    """The folder of real LIBSVM files; the test is skipped without one."""
    folder = libsvm_folder()
    if folder is None:
        pytest.skip(NEEDS["data"][1])
    return folder


@pytest.fixture(scope="session")
def mpiexec() -> str:
    """The MPI launcher; the test is skipped without one."""
    launcher = find_mpiexec()
    if launcher is None:
        pytest.skip(NEEDS["mpi"][1])
    return launcher
