"""Every kernel in plain NumPy: the definition that the native kernels must equal."""

from sparsact.kernels.reference.bucket_index import fill, find, insert
from sparsact.kernels.reference.bucket_statistics import accumulate, leave_one_out, solve
from sparsact.kernels.reference.bucket_values import BucketPredictor, bucket_values
from sparsact.kernels.reference.descent import descend_compact, descend_dense
from sparsact.kernels.reference.differences import symmetric_differences
from sparsact.kernels.reference.enumeration import count_active
from sparsact.kernels.reference.exact import add_products, exponent_range
from sparsact.kernels.reference.fingerprint import Fingerprint
from sparsact.kernels.reference.flips import flip_differences, sparse_flip_differences
from sparsact.kernels.reference.gather import gather_dot, gather_sum, scatter_outer
from sparsact.kernels.reference.hashing import places, row_keys
from sparsact.kernels.reference.network import network_values, sparse_active_units, sparse_network_values
from sparsact.kernels.reference.neurons import ReferenceActiveDot as ActiveDot
from sparsact.kernels.reference.neurons import ReferenceSparseProduct as SparseProduct
from sparsact.kernels.reference.neurons import active_counts
from sparsact.kernels.reference.packed import pack_columns, parity_counts, transpose_bits
from sparsact.kernels.reference.polynomial import evaluate, evaluate_packed
from sparsact.kernels.reference.screen import ReferenceScreen as Screen
from sparsact.kernels.reference.selection import top_k, top_k_dot, top_k_masked
from sparsact.kernels.reference.subset_rank import ranked_gram, subsets_in_order
from sparsact.kernels.reference.walsh_hadamard import walsh_hadamard

__all__ = [
    "ActiveDot",
    "BucketPredictor",
    "Fingerprint",
    "Screen",
    "SparseProduct",
    "accumulate",
    "active_counts",
    "add_products",
    "bucket_values",
    "count_active",
    "descend_compact",
    "descend_dense",
    "evaluate",
    "evaluate_packed",
    "exponent_range",
    "fill",
    "find",
    "flip_differences",
    "gather_dot",
    "gather_sum",
    "insert",
    "leave_one_out",
    "network_values",
    "pack_columns",
    "parity_counts",
    "places",
    "ranked_gram",
    "row_keys",
    "scatter_outer",
    "solve",
    "sparse_active_units",
    "sparse_flip_differences",
    "sparse_network_values",
    "subsets_in_order",
    "symmetric_differences",
    "top_k",
    "top_k_dot",
    "top_k_masked",
    "transpose_bits",
    "walsh_hadamard",
]
