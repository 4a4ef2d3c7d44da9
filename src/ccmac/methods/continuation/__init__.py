"""cross-continuation: smooth objectives without strong convexity."""
