"""The constraints as a method sees them: a normal residual with its interval."""
