"""Operators of torch over the kernels that routers call: torch.compile takes each as one node of its graph."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsact import kernels
from sparsact.routing.backend import gpu_kernels, is_transformed

MOST_UNITS = 32_768  # of a row that a GPU holds at once


def has_top_k(values: Tensor) -> bool:
    """Whether :func:`top_k` takes these values."""
    if values.device.type == "cpu":
        return not is_transformed()
    return values.shape[1] <= MOST_UNITS and gpu_kernels(values) is not None


@torch.library.custom_op("sparsact::top_k", mutates_args=())
def top_k(values: Tensor, k: int) -> Tensor:
    """Places (m, k), in increasing order, of the k largest of each row of ``values`` (m, t), where it has a kernel."""
    values = values.detach()
    if gpu := gpu_kernels(values):
        of_gpu: Tensor = gpu.top_k(values, k)
        return of_gpu
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()
    if bool(values.sum().isnan()):  # the kernel takes none; a NaN counts as the largest, as torch.topk has it
        values = values.nan_to_num(nan=torch.inf)
    return torch.from_numpy(kernels.top_k(values.contiguous().numpy(), k, n_threads=torch.get_num_threads()))


@top_k.register_fake
def _(values: Tensor, k: int) -> Tensor:
    return values.new_empty((values.shape[0], k), dtype=torch.int64)
