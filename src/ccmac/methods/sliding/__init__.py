"""cross-sliding: objectives with kinks or simple sets."""
