"""Interior points for convex programs over cones, the Schur complement summed over agents."""
