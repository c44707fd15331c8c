"""Passes over rows: in this process, where they can be stopped and resumed, or by the workers of a Dask cluster."""
