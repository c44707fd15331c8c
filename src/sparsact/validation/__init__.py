"""Every check of arrays, parameters and rows that a user passes: each stands here once."""
