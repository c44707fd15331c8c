"""A step of training as a CUDA graph: one launch for its hundreds of small kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor

EAGER: Final = 3  # calls before the step is captured, which find what kernels and libraries have to set up


class CapturedStep:
    """A function of tensors on a CUDA device, captured at its fourth call and replayed from then on.

    It must not wait for the device, and what it reads besides its inputs must stay in place: parameters, an optimiser
    with ``capturable=True``. Inputs of another shape than the first ones are computed as they come.

    Parameters
    ----------
    function : callable
        From tensors to one tensor, which the next call overwrites.
    device : torch.device
    """

    def __init__(self, function: Callable[..., Tensor], device: torch.device) -> None:
        self.function, self.device = function, device
        self.inputs: tuple[Tensor, ...] = ()
        self.output: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.n_eager = 0
        stream: Any = torch.cuda.Stream
        self.stream = stream(device)

    def __call__(self, *inputs: Tensor) -> Tensor:
        """What the function returns."""
        with torch.cuda.device(self.device):
            return self._called(inputs)

    def _called(self, inputs: tuple[Tensor, ...]) -> Tensor:
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


@contextmanager
def float32_convolutions(device: torch.device) -> Iterator[None]:
    """Convolutions of float32 on a CUDA device are computed in it, not in TF32, which cuDNN takes by default."""
    cudnn: Any = torch.backends.cudnn
    settings, name = (cudnn.conv, "fp32_precision") if hasattr(cudnn, "conv") else (cudnn, "allow_tf32")  # torch 2.9
    if device.type != "cuda":
        yield
        return
    before = getattr(settings, name)
    setattr(settings, name, "ieee" if name == "fp32_precision" else False)
    try:
        yield
    finally:
        setattr(settings, name, before)
