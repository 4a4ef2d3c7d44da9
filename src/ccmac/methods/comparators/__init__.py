"""The methods that cross-apapc is compared with, one file each, on the same interface."""
