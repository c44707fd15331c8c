"""Solvers of systems K + D: Cholesky factors, transforms of the cube, Kronecker grids and inducing points."""
