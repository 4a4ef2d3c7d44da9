"""The methods, the one driver that runs them, and the registry that names them."""
