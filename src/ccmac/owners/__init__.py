"""Runs between organisations: an owner's files, what it sees of a run, a scaffold to begin with."""
