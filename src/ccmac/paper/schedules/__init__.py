"""The paper's schedules for problems without strong convexity, found by schedule="certified"."""
