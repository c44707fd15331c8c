"""Every figure, table and claim of both papers, measured: ``sparsact reproduce`` writes the page of verdicts."""

__version__ = "0.2.0"
