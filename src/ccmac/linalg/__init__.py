"""Linear algebra, each notion once: families of blocks, Lanczos, Chebyshev, factorizations."""
