"""Experiments of paper B, *A Theoretical View on Sparsely Activated Networks*: one a module."""
