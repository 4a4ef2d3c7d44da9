"""What is derived from a problem on a network, once: coupling, equations, curvature."""
