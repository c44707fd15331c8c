"""Fitting over many processes and machines by Dask: every partition makes a sum, and the sums are merged."""

from sparsact.distributed.fitting import fit
from sparsact.passes.progress import Progress

__all__ = ["Progress", "fit"]
