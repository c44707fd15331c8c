"""Calls of :mod:`sparsact.inference.triton` on arrays, on the GPU or, where there is none, in Triton's interpreter.

Triton must be told of the interpreter before it is imported, and another test may have imported it: hence a process.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import torch


@contextmanager
def device():
    """A function (name, dtype, *arrays) -> array, which runs the product of that name where it can be run."""
    if torch.cuda.is_available():
        yield product
        return
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_interpret) as process:
        yield lambda *arguments: process.submit(product, *arguments).result()


def product(name, dtype, *arrays):
    """What the product returns: float32 arrays in the precision ``dtype``, uint16 as bfloat16; no input changes."""
    from sparsact.inference import triton

    place = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = [None if array is None else torch.from_numpy(array).to(place) for array in arrays]
    tensors = [x.view(torch.bfloat16) if x is not None and x.dtype == torch.uint16 else x for x in tensors]
    tensors = [x.to(getattr(torch, dtype)) if x is not None and x.dtype == torch.float32 else x for x in tensors]
    before = [None if x is None else x.clone() for x in tensors]
    result = getattr(triton, name)(*tensors)
    for x, was in zip(tensors, before, strict=True):
        assert x is None or torch.equal(*(y.contiguous().view(torch.uint8) for y in (x, was)))
    assert result.dtype == tensors[0].dtype
    assert result.device == tensors[0].device
    return result.to("cpu", torch.float32).numpy()


def rounded(array, dtype):
    """A float32 array with the numbers that the precision ``dtype`` has."""
    return torch.from_numpy(array.astype(np.float32)).to(getattr(torch, dtype)).float().numpy()


def _interpret():
    os.environ["TRITON_INTERPRET"] = "1"
