"""Every kernel in plain NumPy: the definition that the native kernels must equal."""

from sparsact.kernels.reference.differences import symmetric_differences
from sparsact.kernels.reference.enumeration import count_active
from sparsact.kernels.reference.exact import add_products, exponent_range
from sparsact.kernels.reference.flips import flip_differences, sparse_flip_differences
from sparsact.kernels.reference.gather import gather_dot, gather_sum, scatter_outer
from sparsact.kernels.reference.network import network_values, sparse_active_units, sparse_network_values
from sparsact.kernels.reference.packed import pack_columns, parity_counts, transpose_bits
from sparsact.kernels.reference.polynomial import evaluate, evaluate_packed
from sparsact.kernels.reference.selection import top_k
from sparsact.kernels.reference.subset_rank import ranked_gram, subsets_in_order
from sparsact.kernels.reference.walsh_hadamard import walsh_hadamard

__all__ = [
    "add_products",
    "count_active",
    "evaluate",
    "evaluate_packed",
    "exponent_range",
    "flip_differences",
    "gather_dot",
    "gather_sum",
    "network_values",
    "pack_columns",
    "parity_counts",
    "ranked_gram",
    "scatter_outer",
    "sparse_active_units",
    "sparse_flip_differences",
    "sparse_network_values",
    "subsets_in_order",
    "symmetric_differences",
    "top_k",
    "transpose_bits",
    "walsh_hadamard",
]
