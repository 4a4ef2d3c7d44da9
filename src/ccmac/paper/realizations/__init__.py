"""The realizations of the theory: exact channels, the graph-local lift, joint and many channels."""
