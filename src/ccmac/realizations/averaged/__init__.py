"""Copies kept by exact averaging, with planned scaling and degrees (the default)."""
