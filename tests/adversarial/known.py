"""What fails today, and why; an entry that passes is an error, so the list cannot go stale."""

from __future__ import annotations

FAILING: dict[str, str] = {
    "redundant": "residuals of the copies of z instead of the returned mean",
    "overlapping": "residuals of the copies of z instead of the returned mean",
    "small-coupling": "residuals of the copies of z instead of the returned mean",
    "absent": "residuals of the copies of z instead of the returned mean",
    "no-local": "residuals of the copies of z instead of the returned mean",
    "storages": "residuals of the copies of z instead of the returned mean",
    "label-owner": "residuals of the copies of z instead of the returned mean",
    "joint-owner": "residuals of the copies of z instead of the returned mean",
    "block-scales": "residuals of the copies of z instead of the returned mean",
    "curvature": "residuals of the copies of z instead of the returned mean",
    "near-local": "rounding in C^+ c is left out of the bound",
    "near-shared": "rounding in D^+ e is left out of the bound",
    "near-across": "directions of S_D below 1e-10 are dropped; proofs that prove nothing",
    "near-coupled": "directions of S below 1e-10 are dropped, rows as they are scaled",
    "near-mixed": "directions of G below 1e-10 are dropped",
    "two-agents": "directions of S_D below 1e-10 are dropped",
    "row-scales": "ranks are cut before rows are equilibrated",
    "identity-blocks": "None beside sparse identities counts as a square block",
    "flat": "the twin divides by L = 0",
    "inside-local": "the proof has no multipliers; gaps below 1e-9 are ignored",
    "inside-shared": "the proof has no multipliers",
    "across-shared": "the proof is polluted by rounding at small levels",
    "coupled-rows": "misfits below 1e-7 are ignored",
    "coupled-against-local": "misfits below 1e-7 are ignored",
    "zero-rows": "the proof has no multipliers; misfits below 1e-7 are ignored",
}
FAILING_METHODS: dict[str, str] = {
    "ordinary cross-apapc": "residuals of the copies of z instead of the returned mean",
    "ordinary joint-apapc": "residuals of the copies of z instead of the returned mean",
    "ordinary papc": "residuals of the copies of z instead of the returned mean",
    "two-agents cross-apapc": "a direction of S_D is dropped; the proof has R = 1",
    "two-agents joint-apapc": "a direction of S_D is dropped; the proof has R = 1",
    "two-agents cross-lbfgs": "a direction of S_D is dropped; the proof has R = 1",
    "two-agents papc": "a direction of S_D is dropped; the proof has R = 1",
    "two-agents dpmm": "a direction of S_D is dropped; the proof has R = 1",
}
