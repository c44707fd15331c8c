"""Everything is a Data-Dependent Sparse Model: the class of Section 2.1 of paper B, and who lives in it (Section 3)."""

from sparsact_papers.dsm.model import DSM, stack
from sparsact_papers.dsm.simulations import from_interpolation, from_lsh, from_nearest, from_scaling, from_switch

__all__ = ["DSM", "from_interpolation", "from_lsh", "from_nearest", "from_scaling", "from_switch", "stack"]
