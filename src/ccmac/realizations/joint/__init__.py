"""The stack normalized as a whole, for comparison."""
