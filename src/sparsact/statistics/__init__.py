"""Statistics of rows: sums that are exact or centred, however the rows are cut, and intervals by held-out errors."""
