"""Gaussian processes: covariances, systems of equations, searches and posteriors that several learners share."""
