"""The page of the experiments: their figures, with the numbers that are drawn."""
