"""The hot loops: each has a readable NumPy reference and a native version in C++, and one of the two is used.

Environment variables override what is chosen by the processor: :mod:`sparsact.kernels.dispatch` lists them.
Kernels trust their arrays: the public functions and estimators that call them have checked them.
"""

from sparsact.kernels.dispatch import backend, description, max_threads, using
from sparsact.kernels.enumeration import ActiveCounts, count_active
from sparsact.kernels.exact_sums import add_products, exponent_range
from sparsact.kernels.gather import gather_dot, gather_sum, scatter_outer
from sparsact.kernels.network_values import active_units, flip_differences, flip_squares, network_values
from sparsact.kernels.neurons import ActiveDot, SparseProduct
from sparsact.kernels.packed_bits import pack_columns, parity_counts, transpose_bits
from sparsact.kernels.polynomial import evaluate, evaluate_packed
from sparsact.kernels.rmsprop_epoch import descend
from sparsact.kernels.selection import top_k, top_k_dot, top_k_masked
from sparsact.kernels.subset_ranks import ranked_gram, subsets_in_order, symmetric_differences
from sparsact.kernels.walsh_hadamard import walsh_hadamard

__all__ = [
    "ActiveCounts",
    "ActiveDot",
    "SparseProduct",
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
