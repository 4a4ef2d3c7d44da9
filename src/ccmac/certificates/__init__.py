"""What is proved of a result: error bound, gap, prices, infeasibility, when to stop."""
