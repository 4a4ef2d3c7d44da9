"""What is proved of a result: error bound, gap, multipliers, infeasibility, when to stop."""
