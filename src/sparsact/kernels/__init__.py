"""The hot loops: one readable NumPy reference and one native (C++) version of each, and the choice between them.

``SPARSACT_KERNELS=reference|native`` forces a choice; ``SPARSACT_ISA=portable|avx2|avx512`` narrows the native one.
Arrays are trusted here: the public doors (estimators, :mod:`sparsact.fourier`) have checked them.
"""

from sparsact.kernels.descent import descend
from sparsact.kernels.dispatch import (
    add_products,
    backend,
    description,
    evaluate,
    evaluate_packed,
    exponent_range,
    max_threads,
    pack_columns,
    parity_counts,
    ranked_gram,
    subsets_in_order,
    symmetric_differences,
    transpose_bits,
    using,
    walsh_hadamard,
)
from sparsact.kernels.gather import gather_dot, gather_sum, scatter_outer
from sparsact.kernels.networks import (
    ActiveCounts,
    active_units,
    count_active,
    flip_differences,
    flip_squares,
    network_values,
)
from sparsact.kernels.neurons import ActiveDot, SparseProduct, active_counts, active_counts_at
from sparsact.kernels.selection import top_k, top_k_dot, top_k_masked

__all__ = [
    "ActiveCounts",
    "ActiveDot",
    "SparseProduct",
    "active_counts",
    "active_counts_at",
    "active_units",
    "add_products",
    "backend",
    "count_active",
    "descend",
    "description",
    "evaluate",
    "evaluate_packed",
    "exponent_range",
    "flip_differences",
    "flip_squares",
    "gather_dot",
    "gather_sum",
    "max_threads",
    "network_values",
    "pack_columns",
    "parity_counts",
    "ranked_gram",
    "scatter_outer",
    "subsets_in_order",
    "symmetric_differences",
    "top_k",
    "top_k_dot",
    "top_k_masked",
    "transpose_bits",
    "using",
    "walsh_hadamard",
]
