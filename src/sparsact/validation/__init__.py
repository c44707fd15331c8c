"""Checks of the arrays, parameters and rows that users pass, each defined once."""
