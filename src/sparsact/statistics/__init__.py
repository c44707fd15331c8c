"""Sums over rows that are the same, or nearly so, however the rows are cut: exact, and centred."""
