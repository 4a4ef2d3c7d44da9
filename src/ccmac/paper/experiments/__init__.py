"""Suites of runs: stated in YAML, run in parallel, recorded, analysed and shown."""
