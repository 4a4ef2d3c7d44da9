"""Each agent's own minimisations."""
