"""One file for each way to solve for the coefficients; see :mod:`~sparsact.learners.low_degree.solvers.solver`."""
