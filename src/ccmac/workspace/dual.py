"""Problems whose coupled rows give z, vertical learning and its like: their dual form, and F of x.

:class:`DualForm`, for quadratics: everybody computes z from the coupled multiplier. Where f_i =
phi_i(x_i) + (h_i/2) ||z||^2 - g_i'z and B_i = beta_i I, without own equations,

    x_i(l) = argmin phi_i + <A_i'l, x>,   z(l) = (g - beta l) / h,   r = sum_i A_i x_i + beta z - b

(g, b, h, beta: sums over agents) leave one dual equation in the multiplier l alone, without
multipliers of consensus:

    S = sum_i A_i H_i^{-1} A_i' + c I >= c I,   c = beta^2 / h,

however unequal the beta_i are. The energy of a multiplier is that of its minimisers:
r'S^{-1}r = sum_i ||x_i(l) - x_i*||^2_{H_i} + h ||z(l) - z*||^2.
Cost of knowing: one row of scalars, with the agents' declarations.

:class:`Explicit`, for other losses: z follows from x. With B_i = beta_i I, beta = sum_i beta_i !=
0, f_i = g_i(x_i) + h_i(z) and no equations on z alone,

    z(x) = -(sum_i A_i x_i - b_i) / beta,     F(x) = sum_i g_i(x_i) + h(z(x)),   h = sum_i h_i,

is all of the problem. Here g_i is a strongly convex quadratic and h_i smooth, entry by entry. Where
every agent holds the same share of h (their data have the same digest) each knows h = n h_i, and
its values and slopes cost nothing; else they are summed.
Cost of knowing: one reduction.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from ccmac.inputs import Array, is_sparse
from ccmac.ledger import Cost, Costs
from ccmac.linalg.blocks import entries, has_entries
from ccmac.linalg.nystrom import Nystrom, random_signs
from ccmac.linalg.symmetric import Solve, factorized
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Function, rise
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.separable import Separable
from ccmac.problem import Problem
from ccmac.runtime.base import FLOAT_BYTES, Piggyback, Runtime
from ccmac.runtime.space import Space, row_dots
from ccmac.workspace.declared import CurvatureTable, OwnQuadratic, own_parts
from ccmac.workspace.equations import Coupling, right_hand_sides

PIECE = 16  # columns of a block that are computed at a time, at the least
TOGETHER = 2**25  # floats that all agents compute at a time, where more columns are no more
LARGEST = 64  # vectors of a block
HALVING = 32  # vectors that halve the iterations, as seen on real data
FLOATS = 2**27  # that all agents may put into one averaging
SPARE = 8  # random vectors beyond the columns that see all of their range
HELD = 2**26  # floats of a sketch that every agent holds, where solves come again


def planned_size(runtime: Runtime, m: int, costs: Costs, *, again: int = 0) -> int:
    """Vectors of a sketch: the least of round k + byte (r + k) where k halves every HALVING.

    Where solves come again, of an operator of rank ``again`` at most: up to four times as many, in
    several averagings if one cannot hold them.
    """
    round_cost = costs.round * runtime.averaging.taking(m).rounds
    wide = runtime.averaging.taking(LARGEST * m)
    row_cost = costs.byte * FLOAT_BYTES * wide.floats_sent * m
    if not round_cost:
        return 0
    most = min(LARGEST, m // 4, FLOATS // (m * runtime.n))
    if again:
        most = min(4 * LARGEST, again + SPARE, m // 4, HELD // m)
    return min(most, int(HALVING * math.log2(1 + round_cost / row_cost)) if row_cost else most)


def rotation(A: Any, d: int) -> Array:
    """A random orthogonal matrix that only who has A can draw again."""
    found = hashlib.sha256(b"range")
    for part in (A.data, A.indices, A.indptr) if is_sparse(A) else (A,) if A is not None else ():
        found.update(np.ascontiguousarray(part).data)
    normal = np.random.default_rng(list(found.digest())).standard_normal((d, d))
    turn, signs = np.linalg.qr(normal)
    return np.asarray(turn * np.sign(np.diagonal(signs)))


ALIKE = 2**18  # floats of long rows, from which on equal rows are looked for


def gathered_rows(runtime: Runtime, blocks: list[Array], widths: list[int], m: int) -> Array:
    """All agents' (m x width) blocks as columns, one under the other.

    Of rows that are equal one is sent, and for each row the number of its own: one averaging, and
    one of a number where sizes ask for it. Who knows all A_i A_i' knows which rows are equal.
    """
    full = [m * width for width in widths]
    if sum(full) < ALIKE or runtime.averaging.hides:
        return runtime.gather_vectors([B.T.ravel() for B in blocks], full).reshape(-1, m)
    found = [_distinct(B) for B in blocks]
    counts = runtime.gather(np.array([[float(len(first))] for first, _ in found]))[:, 0]
    short = [
        min(size, count * width + len(_packed(np.zeros(m), count)))
        for width, size, count in zip(widths, full, counts.astype(int), strict=True)
    ]
    # rows of fewer floats than the longest are padded anyway
    sizes = [size if size <= max(short) else less for size, less in zip(full, short, strict=True)]
    own = [
        B.T.ravel()
        if sizes[i] == full[i]
        else np.append(B[first].T.ravel(), _packed(place, len(first)))
        for i, B, (first, place) in zip(runtime.owned, blocks, found, strict=True)
    ]
    sent = np.split(runtime.gather_vectors(own, sizes), np.cumsum(sizes)[:-1])
    columns = []
    for part, size, width, count in zip(sent, full, widths, counts.astype(int), strict=True):
        if len(part) == size:
            columns.append(part.reshape(-1, m))
        else:
            rows = part[: count * width].reshape(width, count)
            columns.append(rows[:, _unpacked(part[count * width :], count, m)])
    return np.concatenate(columns)


def _distinct(B: Array) -> tuple[Any, Any]:
    """(one row of each kind, the kind of every row); all rows where none are alike."""
    words = np.ascontiguousarray(B + 0.0).view(np.uint64)
    words = words ^ (words >> np.uint64(47))  # short numbers have zeros at the end
    odd = np.random.default_rng(0).integers(2**63, size=B.shape[1], dtype=np.uint64) * 2 + 1
    _, first, place = np.unique(words @ odd, return_index=True, return_inverse=True)
    if np.array_equal(B[first][place], B):
        return first, place
    return np.arange(len(B)), np.arange(len(B))  # two kinds with one number


def _packed(place: Any, count: int) -> Array:
    """Whole numbers below ``count``, several in a float."""
    each = 48 // max(1, int(count - 1).bit_length())
    rows = np.zeros(-(-len(place) // each) * each)
    rows[: len(place)] = place
    return rows.reshape(-1, each) @ (count ** np.arange(each, dtype=np.int64)).astype(np.float64)


def _unpacked(floats: Array, count: int, m: int) -> Any:
    """The numbers again."""
    each = 48 // max(1, int(count - 1).bit_length())
    powers = count ** np.arange(each, dtype=np.int64)
    return (np.rint(floats).astype(np.int64)[:, None] // powers % count).ravel()[:m]


def block_mean(
    runtime: Runtime, own: Callable[[Array], Iterable[Array]], W: Array, extra: Array | None = None
) -> tuple[Array, Array]:
    """Means over agents of their images of W (m x r), and of the rows ``extra``: one averaging.

    ``own`` gives the images of some columns, (m, columns) agent by agent.
    """
    m, r = W.shape
    piece = max(PIECE, TOGETHER // (m * runtime.n))
    parts = [np.ascontiguousarray(W[:, k : k + piece]) for k in range(0, r, piece)]
    flat = (map(np.ravel, own(part)) for part in parts)
    first = 0 if extra is None else extra.shape[1]
    given = [] if extra is None else [extra]
    [mean] = runtime.average_in_pieces(chain(given, flat), first + W.size)
    ends = np.cumsum([part.size for part in parts])[:-1]
    images = [cut.reshape(m, -1) for cut in np.split(mean[first:], ends)]
    return images[0] if len(images) == 1 else np.hstack(images), mean[None, :first]


class DualForm:
    """The parts of the module text for the agents owned here.

    F is strongly convex if ``mu`` and ``c`` are positive.
    """

    def __init__(
        self, problem: Problem, runtime: Runtime, coupling: Coupling, table: CurvatureTable
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.ledger = runtime.ledger
        self.A = coupling.A
        self.table = table
        self.m = problem.m
        self.own_L = table.own_L[list(problem.agents)]  # of the agents here
        self.beta = math.fsum(table.multiple)
        self.h = math.fsum(table.h)
        self.c = self.beta**2 / self.h * (1 - 8 * EPS)
        least = table.mu_x - 2 * EPS * table.d * table.L_x
        self.mu = min(float(least[table.d > 0].min(initial=math.inf)), self.h * (1 - 4 * EPS))
        self.rank = int(table.d.sum())  # of S - c I, at most
        self.noise = math.fsum(table.noise)  # of images under S - c I
        self.space = Space(runtime, list(problem.d.values()), 0)
        self._sketches: dict[tuple[int, int], Nystrom] = {}
        hessians = [part.H for part in self.take(problem)]
        plain = all(H.ndim == 1 for H in hessians)
        self._diagonal = np.concatenate([np.zeros(0), *hessians]) if plain else None

    @cached_property
    def _solves(self) -> list[Solve]:
        """H_i^{-1} of the agents here."""
        hessians = [part.H for part in self.parts]
        return [
            _divided(H) if H.ndim == 1 else factorized(H, np.zeros(H.shape[0])) for H in hessians
        ]

    def take(self, problem: Problem) -> list[OwnQuadratic]:
        """Take over right-hand sides and linear terms of a problem with the same matrices."""
        self.problem, self.b = problem, right_hand_sides(problem).b
        self.parts = [part for part in own_parts(problem) if part is not None]
        assert len(self.parts) == len(problem.agents)
        self.g_x = np.concatenate([np.zeros(0), *(part.g_x for part in self.parts)])
        self.g_z = np.stack([part.g_z for part in self.parts])
        return self.parts

    # -- the agents' own work --------------------------------------------------------------------
    def inverse(self, v: Array) -> Array:
        """H_i^{-1} v_i, flat. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        if self._diagonal is not None:
            return np.asarray(v / self._diagonal)
        out = np.empty_like(v)
        for k, solve in enumerate(self._solves):
            self.space.x_of(out, k)[...] = solve(self.space.x_of(v, k))
        return out

    def minimisers(self, multiplier: Array) -> Array:
        """x_i at a common multiplier. Cost: 1 argmin, 1 A."""
        return self.inverse(self.g_x - self.A.adjoint_common(multiplier))

    def shared(self, multiplier: Array, slope: Array) -> Array:
        """z at a common multiplier; ``slope`` is the sum of the g_i."""
        return np.asarray((slope - self.beta * multiplier) / self.h)

    def images(self, x: Array) -> Array:
        """A_i x_i, one row an agent. Cost: 1 A."""
        return self.A.forward(x).reshape(-1, self.m)

    # -- together --------------------------------------------------------------------------------
    @cached_property
    def lengths_of_blocks(self) -> Array:
        """||A_i||_F of the agents here."""
        blocks = [np.zeros(0) if b is None else entries(b) for b in self.A.blocks]
        return np.asarray(np.sqrt([float(np.vdot(v, v)) for v in blocks]))

    def sums(self, x: Array, *rows: Array, minus: Array | None = None) -> list[Array]:
        """sum_i A_i x_i (- b_i), and the sums of further rows: one averaging, 1 A."""
        images = self.images(x)
        means = self.runtime.combine([images if minus is None else images - minus, *rows])
        return [mean[0] * self.problem.n for mean in means]

    def apply(self, multiplier: Array) -> tuple[Array, Array]:
        """(S multiplier, the change of x that goes with it): one averaging, 1 argmin, 2 A."""
        change = self.inverse(self.A.adjoint_common(multiplier))
        [image] = self.sums(change)
        return np.asarray(image + self.c * multiplier), change

    def residual(self, x: Array) -> tuple[Array, Array, float]:
        """(sum A_i x_i - b_i, sum g_i, sum ||g_i||): one averaging, 1 A."""
        coupled, slope, sizes = self.sums(x, self.g_z, self._lengths(), minus=self.b)
        return coupled, slope, float(sizes[0])

    def slope(self) -> Piggyback:
        """Sum g_i, and last the sum of ||g_i||: travels in the next message."""
        return self.runtime.piggyback(np.hstack([self.g_z, self._lengths()]))

    def _lengths(self) -> Array:
        return np.sqrt(row_dots(self.g_z, self.g_z))[:, None]

    @property
    def cost(self) -> Cost:
        """Of :meth:`apply`."""
        return Cost(argmins=1) + 2 * self.A.cost + self.runtime.average_cost(self.m)

    def sketch(self, size: int, seed: int) -> Nystrom:
        """Of S - c I, from ``size`` vectors in one averaging (of very long ones in several).

        The first time size argmins and 2 size A; then nothing.
        """
        if (size, seed) not in self._sketches:
            W = random_signs(self.m, size, seed)
            most = max(FLOATS // (self.m * self.runtime.n), PIECE)  # in one averaging
            cuts = np.split(W, range(most, size, most), axis=1)
            images = np.hstack([self._block(cut) for cut in cuts]) if size else W
            noise = self.noise + 8 * EPS * self.c  # of S p - c p
            self._sketches = {(size, seed): Nystrom.of(W, images, noise)}
        return self._sketches[size, seed]

    def _block(self, W: Array) -> Array:
        """(S - c I) W."""
        self.ledger.charge(argmins=W.shape[1])
        self.ledger.charge_cost(2 * W.shape[1] * self.A.cost)
        return self.problem.n * block_mean(self.runtime, self._own_images, W)[0]

    def _own_images(self, W: Array) -> Iterator[Array]:
        """A_i H_i^{-1} A_i'W, agent by agent."""
        for block, solve in zip(self.A.blocks, self._solves, strict=True):
            yield np.zeros(W.shape) if block is None else block @ solve(block.T @ W)


def _divided(diagonal: Array) -> Solve:
    """v / diagonal, for one vector or several columns."""
    return lambda v: np.asarray((v.T / diagonal).T)


MIXES = 2.0
DENSE = 3000  # entries of an x_i whose Hessian may be factorized


class Explicit:
    """beta, and h of the agents owned here; ``common``: everybody knows the whole h.

    ``norms`` bounds |A_i|, for all agents.
    """

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, known: Array
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.norms, self.common = known[:, 1], _alike(known)
        self.beta = math.fsum(table.multiple)
        self.rank = min(int(table.d.sum()), problem.m)  # of sum_i A_i (...) A_i'
        zero = SquaredDistance(0.0)
        self.x_parts, self.parts = (
            [getattr(agent.objective, name) or zero for agent in problem.agents.values()]
            for name in ("x_part", "z_part")
        )

    @classmethod
    def of(cls, problem: Problem, runtime: Runtime, table: CurvatureTable) -> Explicit | None:
        """Where the problem has the form of the module text."""
        if table.multiples is None or not (table.separable and table.smooth):
            return None
        if "D" in problem.present or not math.fsum(table.multiple):
            return None
        rows = np.array([_declared(problem, i) for i in problem.agents])
        hides = runtime.averaging.hides
        known = _declared_openly(problem, rows, runtime) if hides else runtime.gather(rows)
        kind = known[:, 0]
        curved = table.mu_x[table.d > 0].min(initial=math.inf) > 0
        if not (curved and kind.all() and ((kind != MIXES).all() or _alike(known))):
            return None  # what mixes entries is not summed
        return cls(problem, runtime, table, known)

    def slopes(self, z: Array) -> Array:
        """grad h_i(z), one row an agent."""
        return np.stack([part.gradient_at(z) for part in self.parts])

    def bends(self, z: Array) -> Array:
        """h_i''(z), one row an agent."""
        return np.stack([rise(part.gradient_at, z) for part in self.parts])

    def values(self, points: Array) -> Array:
        """h_i at every row of ``points``, one row an agent."""
        return np.array([[part.value_at(z) for z in points] for part in self.parts])

    # -- where everybody knows h ------------------------------------------------------------------
    def value(self, z: Array) -> float:
        """h(z)."""
        return self.problem.n * self.parts[0].value_at(z)

    def slope(self, z: Array) -> Array:
        """grad h(z)."""
        return np.asarray(self.problem.n * self.parts[0].gradient_at(z))

    def gram(self, z: Array, E: Array) -> Array:
        """E h''(z) E'."""
        return self.problem.n * self.parts[0].gram(z, E)


def _declared_openly(problem: Problem, rows: Array, runtime: Runtime) -> Array:
    """The same where rows are hidden: of the norms the sum of squares, in place of the digest the
    name that a function has for all, if it has one and those here are the same.
    """
    names = np.zeros((len(rows), 3))
    names[:, 0] = list(problem.agents)
    for k, agent in enumerate(problem.agents.values()):
        part = getattr(agent.objective, "z_part", None)
        if isinstance(part, Function) and part.public_name is not None and _alike(rows):
            names[k] = [-1.0, part.public_name, 0.0]
    kinds, public = np.split(runtime.gather(np.hstack([rows[:, :1], names])), [1], axis=1)
    square = float(runtime.total(rows[:, 1:2] ** 2)[0])
    norms = np.full((runtime.n, 1), math.sqrt(square / runtime.n) * (1 + 1e-12))
    return np.hstack([kinds, norms, public])


def _alike(known: Array) -> bool:
    """Whether the digests of all h_i are equal."""
    return bool((known[:, 2:] == known[0, 2:]).all())


def _declared(problem: Problem, i: int) -> list[float]:
    """(has the agent the form, MIXES where h_i mixes entries; a bound on |A_i|; h_i's digest)."""
    objective = problem.agents[i].objective
    d = problem.d[i]
    if not isinstance(objective, Separable):
        return [0.0] * 5
    x = objective.x_part
    z = objective.z_part
    A = problem.agents[i].A
    small = x is not None and (x.coordinatewise or d <= DENSE)
    quadratic = not d or (small and x is not None and "quadratic" in x.capabilities)
    known = z is None or ("gradient" in z.capabilities and z.has_gram)
    if not (quadratic and known and (A is None or has_entries(A))):
        return [0.0] * 5
    return [1.0 if z is None or z.coordinatewise else MIXES, norm_bound(A), *digest(z)]


def digest(part: Any) -> list[float]:
    """Of a function's data, in three floats."""
    state = hashlib.sha256()
    add_to_digest(state, part)
    return [float(int(state.hexdigest()[k : k + 12], 16)) for k in (0, 12, 24)]


def norm_bound(block: Any) -> float:
    """A bound on the norm of |block|: that of Frobenius, or of rows and columns."""
    if block is None or 0 in block.shape:
        return 0.0
    entries = abs(block)
    rows, columns = (float(np.asarray(entries.sum(axis=k)).max()) for k in (1, 0))
    frobenius = float(np.linalg.norm(block.data if is_sparse(block) else np.ravel(block)))
    return min(frobenius, math.sqrt(rows * columns)) * (1 + 1e-12)


def add_to_digest(state: Any, value: Any) -> None:
    """Data of any kind to a digest, with their shapes, so that nothing runs into its neighbor."""
    if isinstance(value, Function):
        state.update(type(value).__name__.encode())
        value = value.state()
    if isinstance(value, Mapping):
        value = [item for pair in sorted(value.items()) for item in pair]
    if isinstance(value, list | tuple):
        state.update(b"[%d" % len(value))
        for item in value:
            add_to_digest(state, item)
    elif is_sparse(value):
        rows = value.tocsr()
        add_to_digest(state, [*rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr])
    elif isinstance(value, np.ndarray):
        state.update(str((value.dtype, value.shape)).encode() + value.tobytes())
    else:
        state.update(f"{value!r};".encode())
