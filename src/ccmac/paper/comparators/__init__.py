"""The methods that cross-apapc is compared with, on the same interface."""
