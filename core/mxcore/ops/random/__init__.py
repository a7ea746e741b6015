"""Random numbers, the densities of their distributions, point processes."""
