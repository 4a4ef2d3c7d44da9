"""Newton's method across the agents."""
