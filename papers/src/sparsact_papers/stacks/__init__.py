"""Learning networks of several sparse layers, which neither paper does.

Each search moves eight stacks of random units side by side, by Adam, with a penalty in each layer on the activity
beyond its k largest outputs. The best descends by L-BFGS, all layers together, and thresholds are raised from the
bottom up until membership is exact. Some searches, and one layer with the units of all layers, are compared on rows
held out of them; the best is fitted to all rows. Errors of stacks are large at few rows, so that one layer stays the
answer unless stacks halve its error, or are better by two standard errors of the difference.

Depth pays where gates depend on features that must be computed first, such as products of inputs. Where gates are
columns, one layer is exact. With the planted number of units no descent found parities: allow twice as many.
"""

from sparsact_papers.stacks.regressor import StackRegressor

__all__ = ["StackRegressor"]
