"""A step of training as a CUDA graph: one launch for its hundreds of small kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

EAGER = 3  # calls before the step is captured, which find what kernels and libraries have to set up


class CapturedStep:
    """A function of tensors on a CUDA device, captured at its fourth call and replayed from then on.

    It must not wait for the device, and what it reads besides its inputs must stay in place: parameters, an optimiser
    with ``capturable=True``. Inputs of another shape than the first ones are computed as they come.

    Parameters
    ----------
    function : callable
        From tensors to one tensor, which the next call overwrites.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function
        self.inputs: tuple[Tensor, ...] = ()
        self.output: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.n_eager = 0
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's

    def __call__(self, *inputs: Tensor) -> Tensor:
        """What the function returns."""
        if not self.inputs:
            self.inputs = tuple(torch.empty_like(x) for x in inputs)
        if any(x.shape != own.shape for x, own in zip(inputs, self.inputs, strict=True)):
            return self.function(*inputs)
        for own, x in zip(self.inputs, inputs, strict=True):
            own.copy_(x)
        if self.n_eager < EAGER:
            self.n_eager += 1
            return self._beside()
        if self.graph is None or self.output is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.output = self.function(*self.inputs)
        self.graph.replay()
        return self.output

    def _beside(self) -> Tensor:
        """The function itself, on a stream of its own, as capturing needs it."""
        now = torch.cuda.current_stream()
        self.stream.wait_stream(now)
        with torch.cuda.stream(self.stream):
            output = self.function(*self.inputs)
        now.wait_stream(self.stream)
        return output


def float32_convolutions() -> AbstractContextManager[None]:
    """Convolutions of float32 are computed in it, not in TF32, which torch lets cuDNN do by default."""
    flags: Any = torch.backends.cudnn.flags
    within: AbstractContextManager[None] = flags(enabled=True, allow_tf32=False)
    return within
