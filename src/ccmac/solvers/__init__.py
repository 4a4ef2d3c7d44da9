"""Iterations: frozen hyperparameters, pure init/step, one driver loop."""
