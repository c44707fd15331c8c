"""Products with the rows of active units on a GPU, as Triton kernels. Needs Triton: ``pip install "sparsact[gpu]"``.

No list of active units goes through memory and nothing waits for the host, so that calls may be captured in a CUDA
graph. Sums are made in float32, without atomic additions, in an order fixed by the shapes and by which units of the
input are active: the same input gives the same bits in every call and, unless inputs are taken together, whatever else
is in its batch. No gradient is recorded.
"""

try:
    import triton as _triton  # noqa: F401
except ImportError as error:
    from sparsact.extras import missing

    raise ImportError(f"{missing('sparsact.inference.triton', 'triton')} CUDA builds of torch bring it.") from error

from sparsact.inference.triton.products import active_dot, int8_product, sparse_product

__all__ = ["active_dot", "int8_product", "sparse_product"]
