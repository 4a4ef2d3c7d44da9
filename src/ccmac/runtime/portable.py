"""Arithmetic that rounds alike on all x86-64 processors, for owners who cannot choose hardware.

BLAS, NumPy and the C library choose kernels by what the processor can do, and kernels round
differently. Told by the environment of a process, before they are loaded, they take those that
every x86-64 processor since 2008 has. What all compute from what all know then has the same bits
everywhere: nothing drifts apart, no bound has to allow for it. Slower by the width of the vectors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import numpy as np

MARK = "CCMAC_PORTABLE"  # set in a process that has been started so
# Both spellings of the C library: before and since 2.33.
_HWCAPS = "-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable,-FMA4_Usable,-AVX512F_Usable"


def environment(present: Mapping[str, str]) -> dict[str, str]:
    """``present``, changed so that a process rounds as all others do."""
    dispatched = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features = getattr(dispatched, "__cpu_dispatch__", [])
    return {
        **present,
        MARK: "1",
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_HWCAPS}",
    }


def enter() -> None:
    """Start this program anew with such arithmetic, unless it has been."""
    if MARK not in os.environ:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment(os.environ))
