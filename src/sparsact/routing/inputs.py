"""What the public door of a router asks of its inputs and of its state: NumPy arrays or torch tensors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsact.checks import checked_floats, checked_reals

Shapes = Mapping[str, tuple[int | None, ...]]


def is_tensor(array: Any) -> bool:
    """Whether ``array`` is a torch tensor; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def checked_inputs(x: Any) -> Any:
    """``x`` as finite floats (m, d): a tensor if it is one, else an array. Half precision stays; integers widen."""
    floats = _checked_tensor(x, "`x`") if is_tensor(x) else checked_floats(x, "`x`")
    if floats.ndim != 2 or not floats.shape[1]:
        raise ValueError(
            f"`x` must have one row an input and at least one column; got shape {tuple(floats.shape)}: "
            "reshape it to (-1, columns)."
        )
    return floats


def _checked_tensor(x: Any, what: str) -> Any:
    import torch

    if x.layout != torch.strided:
        raise ValueError(f"{what} must be a dense tensor; got layout {x.layout}: pass its to_dense().")
    if x.dtype == torch.bool:
        raise ValueError(f"{what} holds bits; pass numbers, such as 1 - 2 * x.")
    if x.is_complex() or x.is_quantized:
        raise ValueError(f"{what} must hold real numbers; got {x.dtype}: convert them first.")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = x.to(torch.float64)
    finite = torch.isfinite(x)
    if not finite.all():
        place = tuple(torch.argwhere(~finite)[0].tolist())
        raise ValueError(f"{what} must be finite; the one at {place} is {x[place].item()}.")
    return x


def checked_state(state: Mapping[str, Any], shapes: Shapes, x: Any, name: str) -> dict[str, Any]:
    """``state`` with exactly the entries of ``shapes`` (None: any length), of the kind and on the device of ``x``."""
    if not isinstance(state, Mapping) or set(state) != set(shapes):
        given = sorted(map(str, state)) if isinstance(state, Mapping) else repr(state)
        raise ValueError(f"the state of {name} has the entries {sorted(shapes)}; got {given}.")
    return {entry: _checked_entry(state[entry], shapes[entry], x, f"`{entry}` of {name}") for entry in shapes}


def _checked_entry(value: Any, shape: tuple[int | None, ...], x: Any, what: str) -> Any:
    array = _checked_tensor(value, what) if is_tensor(value) else checked_reals(value, what)
    if array.ndim != len(shape) or any(n not in (None, size) for n, size in zip(shape, array.shape, strict=True)):
        need = str(tuple("any" if n is None else n for n in shape)).replace("'", "")
        raise ValueError(f"{what} must have shape {need}; got {tuple(array.shape)}.")
    if is_tensor(x) and is_tensor(array) and array.device != x.device:
        raise ValueError(f"{what} is on {array.device} and `x` on {x.device}; bring them together.")
    if is_tensor(array) and not is_tensor(x):
        raise ValueError(f"{what} is a torch tensor and `x` is not; pass both of one kind.")
    return array if is_tensor(array) == is_tensor(x) else like(array, x)


def like(array: np.ndarray[Any, Any], x: Any) -> Any:
    """A NumPy array as one of the kind of ``x``, on its device."""
    if not is_tensor(x):
        return array
    import torch

    return torch.tensor(array, device=x.device)
