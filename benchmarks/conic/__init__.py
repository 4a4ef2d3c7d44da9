"""A conic interior-point core with the Schur complement summed over agents: a prototype.

It is what cross-ipm is going to be: models with cones, equilibration, Nesterov-Todd scaling, one
common system. Not part of the package; ``benchmarks/conic_judge.py`` runs it on third-party sets
(docs/decisions.md has what was measured). The judge does not run ``active``, ``duality``,
``stopping`` and ``verdict``: they are written for an iteration on the package's workspace, with a
point, multipliers and an estimate of its own, which is not here.
"""
