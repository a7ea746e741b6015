"""Linear algebra: matrix products, triangles, factorisations."""
