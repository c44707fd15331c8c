"""Every kernel in plain NumPy: the definition that the native kernels must equal."""

from sparsact.kernels.reference.differences import symmetric_differences
from sparsact.kernels.reference.exact import add_products, exponent_range
from sparsact.kernels.reference.network import network_values
from sparsact.kernels.reference.packed import pack_columns, parity_counts, transpose_bits
from sparsact.kernels.reference.polynomial import evaluate, evaluate_packed
from sparsact.kernels.reference.subset_rank import ranked_gram, subsets_in_order
from sparsact.kernels.reference.walsh_hadamard import walsh_hadamard

__all__ = [
    "add_products",
    "evaluate",
    "evaluate_packed",
    "exponent_range",
    "network_values",
    "pack_columns",
    "parity_counts",
    "ranked_gram",
    "subsets_in_order",
    "symmetric_differences",
    "transpose_bits",
    "walsh_hadamard",
]
