"""Operators of torch over the kernels that routers call: torch.compile takes each as one node of its graph."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsact import kernels


@torch.library.custom_op("sparsact::top_k", mutates_args=())
def top_k(values: Tensor, k: int) -> Tensor:
    """Places (m, k), in increasing order, of the k largest of each row of ``values`` (m, t), which are on the CPU."""
    values = values.detach()
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()
    if bool(values.sum().isnan()):  # the kernel takes none; a NaN counts as the largest, as torch.topk has it
        values = values.nan_to_num(nan=torch.inf)
    return torch.from_numpy(kernels.top_k(values.contiguous().numpy(), k, n_threads=torch.get_num_threads()))


@top_k.register_fake
def _(values: Tensor, k: int) -> Tensor:
    return values.new_empty((values.shape[0], k), dtype=torch.int64)
