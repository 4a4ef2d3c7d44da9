"""Interior points: the Newton system of a quadratic problem with bounds, summed over agents."""
