"""The paper's graph-local lift with its proved constants."""
