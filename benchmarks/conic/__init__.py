"""A conic interior-point core with the Schur complement summed over agents: a prototype.

It is what cross-ipm is going to be: models with cones, equilibration, Nesterov-Todd scaling, one
common system, and a step that guesses the active rows. Not part of the package; judged by
``benchmarks/conic_judge.py`` on problems of others (docs/decisions.md has what was measured).
"""
