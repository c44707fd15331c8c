"""Operators of torch, called directly where nothing looks on: its dispatcher takes longer than small products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from sparsact import kernels
from sparsact.routing.array_functions import gpu_kernels, integers, is_transformed

Backward = Callable[[Any, Any, Tensor], tuple[Tensor | None, ...]]


class Operator:
    """A function of tensors that torch compiles as one node, exports and differentiates.

    Parameters
    ----------
    function : callable
        Computes a new tensor.
    composed : callable, default=None
        The same by torch's own operators, for ``torch.func`` transforms and for ``torch.onnx.export``. None for a
        function that only GPUs run.
    fake : callable
        Takes the same arguments, and returns an empty tensor of the shape of the result.
    save, backward : callable, default=None
        ``save(ctx, inputs, output)``, and ``backward(ctx, needs, gradient)`` with a gradient for each input, where
        ``needs`` says which are needed. None for a function that is not differentiated.
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        fake: Callable[..., Tensor],
        save: Callable[[Any, Any, Any], None] | None = None,
        backward: Backward | None = None,
        composed: Callable[..., Tensor] | None = None,
    ) -> None:
        self.function, self.save, self.backward, self.composed = function, save, backward, composed
        name = f"sparsact::{function.__name__.lstrip('_')}"
        self.direct: Any = type(name.replace("::", "_"), (_Direct,), {})  # a profiler shows the name
        self.operator: Any = torch.library.custom_op(name, function, mutates_args=())
        self.operator.register_fake(fake)
        if composed is not None:
            torch._decomp.decomposition_table[self.operator._opoverload] = composed
        if backward is not None:
            self.operator.register_autograd(
                lambda ctx, gradient: backward(ctx, ctx.needs_input_grad, gradient), setup_context=save
            )

    def __call__(self, *inputs: object) -> Tensor:
        """The function's value at the inputs; the first input is a tensor."""
        if self.composed is not None and is_transformed():
            return self.composed(*inputs)
        if is_watched(*inputs):
            of_operator: Tensor = self.operator(*inputs)
            return of_operator
        if self.backward is None or not (torch.is_grad_enabled() and any(map(_has_gradient, inputs))):
            return self.function(*inputs)
        of_function: Tensor = self.direct.apply(self, *inputs)
        return of_function


class _Direct(torch.autograd.Function):
    """An operator's function, and its gradients."""

    @staticmethod
    def forward(ctx: Any, operator: Any, *inputs: object) -> Tensor:
        output: Tensor = operator.function(*inputs)
        ctx.operator = operator
        operator.save(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, *ctx.operator.backward(ctx, ctx.needs_input_grad[1:], gradient)


def is_watched(*inputs: object) -> bool:
    """Whether a compiler, a tracer or a special kind of tensor must see operators."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    if _get_current_dispatch_mode() is not None or torch._C._are_functorch_transforms_active():
        return True
    return any(isinstance(one, Tensor) and _is_special(one) for one in inputs)


def _is_special(one: Tensor) -> bool:
    """Whether a tensor has no numbers, or is a kind of its own, such as the batched ones of ``is_grads_batched``."""
    return type(one) not in (Tensor, nn.Parameter) or one.is_meta or torch._C._functorch.is_legacy_batchedtensor(one)


def _has_gradient(one: object) -> bool:
    return isinstance(one, Tensor) and one.requires_grad


def of_two_matrices(
    function: Callable[..., Tensor],
    fake: Callable[..., Tensor],
    first: Callable[..., Tensor],
    second: Callable[..., Tensor],
    composed: Callable[..., Tensor],
) -> Operator:
    """An operator of two matrices, of indices and more, with functions for the gradient at each matrix."""

    def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.n_inputs = len(inputs)

    def backward(ctx: Any, needs: tuple[bool, ...], gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right, indices = ctx.saved_tensors
        return (
            first(gradient, left, right, indices) if needs[0] else None,
            second(gradient, left, right, indices) if needs[1] else None,
            *(None,) * (ctx.n_inputs - 2),
        )

    return Operator(function, fake, save, backward, composed)


MOST_UNITS: Final = 32_768  # of a row that a GPU holds at once


def has_top_k(values: Tensor) -> bool:
    """Whether :func:`top_k` takes these values."""
    if values.device.type == "cpu":
        return not is_transformed()
    return values.shape[1] <= MOST_UNITS and gpu_kernels(values) is not None


def _top_k(values: Tensor, k: int) -> Tensor:
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


def composed_top_k(values: Tensor, k: int) -> Tensor:
    """Places (m, k), in increasing order, of the k largest of each row; of equal values the first wins."""
    m, t = values.shape
    least = values.topk(k, dim=1).values[:, -1:]
    above, equal = values > least, values == least
    room = k - above.sum(dim=1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(dim=1) <= room))
    # The j-th chosen place of a row goes to column j; the others to a column past the last, which is cut off.
    column = (chosen.cumsum(dim=1) - 1).where(chosen, k)
    places: Tensor = integers(t, values).expand(m, t)
    return places.new_zeros(m, k + 1).scatter(1, column, places)[:, :k]


top_k = Operator(
    _top_k, lambda values, k: values.new_empty((values.shape[0], k), dtype=torch.int64), composed=composed_top_k
)
