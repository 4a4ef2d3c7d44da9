"""Models in files (MPS, QPS, LP), their columns dealt to owners."""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from ccmac.errors import InputError, needed
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem
from ccmac.texts import MEGABYTE, read_text, shown


@dataclass(frozen=True)
class Table:
    """min x'Px/2 + c'x with low <= K x <= high and bounds of x."""

    P: sp.csr_array
    c: Array
    K: sp.csr_array
    low: Array
    high: Array
    lower: Array
    upper: Array
    names: list[str]
    rows: list[str]
    note: str  # how the objective differs from the file's

    @classmethod
    def read(cls, file: Path) -> Table:
        """By the reader of HiGHS."""
        highspy = needed("highspy", "ccmac import needs HiGHS; pip install 'ccmac[files]'")
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        with tempfile.TemporaryDirectory() as place:
            known = file
            if file.suffix == ".qps":  # HiGHS goes by the name
                known = Path(place) / "model.mps"
                shutil.copyfile(file, known)
            status = highs.readModel(str(known))
        if status == highspy.HighsStatus.kError:
            raise InputError(f"{file}: is no model that HiGHS reads; check it with its own program")
        lp = highs.getLp()
        size = lp.num_col_
        names = list(lp.col_names_) or [f"x{j}" for j in range(size)]
        for name, kind in zip(names, lp.integrality_, strict=False):
            if kind != highspy.HighsVarType.kContinuous:
                raise InputError(
                    f"{file}: column {name} is an integer; ccmac solves continuous problems: "
                    "relax it"
                )
        sign = 1.0 if lp.sense_ == highspy.ObjSense.kMinimize else -1.0
        found = highs.getModel().hessian_
        half = _matrix(found, (size, size)) if found.dim_ else sp.csr_array((size, size))
        full = half + half.T - sp.diags_array(half.diagonal())
        return cls(
            sp.csr_array(sign * full),
            sign * np.array(lp.col_cost_),
            _matrix(lp.a_matrix_, (lp.num_row_, size)),
            np.array(lp.row_lower_, dtype=float),
            np.array(lp.row_upper_, dtype=float),
            np.array(lp.col_lower_, dtype=float),
            np.array(lp.col_upper_, dtype=float),
            names,
            list(lp.row_names_) or [f"row{k}" for k in range(lp.num_row_)],
            (sign < 0) * "a maximum: the objective's sign is turned. "
            + bool(lp.offset_) * f"the objective leaves out the constant {lp.offset_:g}.",
        )

    def dealt(self, count: int) -> dict[str, NDArray[np.intp]]:
        """Runs of columns of equal length, but for what the quadratic term keeps together."""
        size = len(self.c)
        if not 0 < count <= size:
            raise InputError(f"--owners {count}: there are {size} columns; give 1 to {size}")
        _, group = connected_components(self.P, directed=False)
        first = np.full(group.max() + 1, size)
        np.minimum.at(first, group, np.arange(size))
        place = first[group] * count // size
        found = {f"owner{k}": np.flatnonzero(place == k) for k in range(count)}
        return {name: columns for name, columns in found.items() if len(columns)}

    def named(self, file: str) -> dict[str, NDArray[np.intp]]:
        """As a file says: names of columns, or patterns of names, for each owner."""
        try:
            said = tomllib.loads(read_text(Path(file), file, 64 * MEGABYTE))
        except FileNotFoundError:
            raise InputError(f"--owners {shown(file)}: is no number and no file") from None
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: {error}") from None
        owner = np.full(len(self.names), -1)
        for k, (name, patterns) in enumerate(said.items()):
            if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
                raise InputError(f'{file}, {name}: give a list of columns, such as ["x1", "y_*"]')
            for j in np.flatnonzero(owner < 0):
                column = self.names[j]
                if column in patterns or any(fnmatch.fnmatchcase(column, p) for p in patterns):
                    owner[j] = k
        if (owner < 0).any():
            missing = self.names[int(np.argmin(owner))]
            raise InputError(f"{file}: column {missing} has no owner; list it, or a pattern for it")
        return {name: np.flatnonzero(owner == k) for k, name in enumerate(said)}

    def problem(self, owners: dict[str, NDArray[np.intp]]) -> Problem:
        """Rows of one owner are its own, rows of several are coupled."""
        owner = np.zeros(len(self.c), dtype=np.intp)
        for k, columns in enumerate(owners.values()):
            owner[columns] = k
        P = sp.coo_array(self.P)
        if (crossing := owner[P.row] != owner[P.col]).any():
            i, j = (self.names[side[np.argmax(crossing)]] for side in (P.row, P.col))
            raise InputError(
                f"columns {i} and {j}: have a quadratic term in common and different owners; give "
                "both to one"
            )
        K, side, sense, rows = self._rows()
        entries = sp.coo_array(K)
        most = np.full(K.shape[0], -1)
        least = np.full(K.shape[0], len(owners))
        np.maximum.at(most, entries.row, owner[entries.col])
        np.minimum.at(least, entries.row, owner[entries.col])
        own = np.where(most == least, most, np.where(most < 0, 0, -1))
        coupled = np.flatnonzero(own < 0)
        agents = []
        for k, (name, columns) in enumerate(owners.items()):
            mine = np.flatnonzero(own == k)
            local: dict[str, Any] = {}
            if len(mine):
                local = {"C": K[mine][:, columns], "c": side[mine], "C_sense": sense[mine].tolist()}
            agents.append(
                Agent(
                    Quadratic(self.P[columns][:, columns], -self.c[columns]),
                    A=K[coupled][:, columns],
                    b=side[coupled] if k == 0 else None,
                    lower=self.lower[columns],
                    upper=self.upper[columns],
                    name=name,
                    **local,
                )
            )
        names = [rows[k] for k in coupled]
        return Problem(
            agents,
            q=0,
            m=len(coupled),
            sense=sense[coupled].tolist() or None,
            row_names=names if names and len({*names}) == len(names) else None,
        )

    def _rows(self) -> tuple[sp.csr_array, Array, NDArray[Any], list[str]]:
        """Rows K x ==, <= or >= side; those with two ends are two rows, those without none."""
        equal = self.low == self.high
        ends = (equal, ~equal & np.isfinite(self.high), ~equal & np.isfinite(self.low))
        at = np.concatenate([np.flatnonzero(there) for there in ends])
        sense = np.repeat(["==", "<=", ">="], [np.count_nonzero(there) for there in ends])
        side = np.where(sense == ">=", self.low[at], self.high[at])
        twice = np.bincount(at, minlength=1)[at] > 1
        rows = [
            f"{self.rows[k]} {kind}" if more else self.rows[k]
            for k, kind, more in zip(at, sense, twice, strict=True)
        ]
        return sp.csr_array(self.K[at]), side, sense, rows


def _matrix(stored: Any, shape: tuple[int, int]) -> sp.csr_array:
    """What HiGHS stores by columns."""
    parts = (np.array(stored.value_), np.array(stored.index_), np.array(stored.start_))
    return sp.csr_array(sp.csc_array(parts, shape=shape))
