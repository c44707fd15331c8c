"""What a router takes at its public door: NumPy arrays or torch tensors, and a state of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsact.checks import checked_floats, checked_reals
from sparsact.routing.namespace import is_tensor, like

Shape = tuple[int | None, ...]  # None: any length


def checked_inputs(x: Any) -> Any:
    """``x`` (m, d) as finite floats, half precision and float32 as they are, whole numbers as float64."""
    rows = _checked_tensor(x, "router inputs") if is_tensor(x) else checked_floats(x, "router inputs")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"router inputs must have one row an input, (m, d); got shape {tuple(rows.shape)}: reshape to (-1, d)."
        )
    return rows


def _checked_tensor(x: Any, what: str) -> Any:
    import torch

    if x.layout != torch.strided:
        raise ValueError(f"{what} must be a dense tensor; got layout {x.layout}: pass its to_dense().")
    if x.dtype == torch.bool:
        raise ValueError(f"{what} hold bits; pass numbers, such as 1 - 2 * bits.long().")
    if x.is_complex() or x.is_quantized:
        raise ValueError(f"{what} must hold real numbers; got {x.dtype}: convert them first.")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = x.to(torch.float64)
    finite = x.isfinite()
    if not bool(finite.all()):
        place = tuple((~finite).nonzero()[0].tolist())
        raise ValueError(f"{what} must be finite; the one at {place} is {x[place].item()}.")
    return x


def checked_state(state: Any, shapes: Mapping[str, Shape], x: Any, name: str) -> dict[str, Any]:
    """A state that holds all arrays that a router needs, of these shapes, of the kind and on the device of ``x``."""
    missing = [each for each in shapes if not isinstance(state, Mapping) or each not in state]
    if missing:
        raise ValueError(f"the state of {name} lacks {', '.join(missing)}; start from initial_state().")
    return {each: _checked_entry(state[each], shapes.get(each), x, f"`{each}` of {name}") for each in state}


def _checked_entry(value: Any, shape: Shape | None, x: Any, what: str) -> Any:
    array = _checked_tensor(value, what) if is_tensor(value) else checked_reals(value, what)
    got = tuple(array.shape)
    if shape is not None and (
        len(got) != len(shape) or any(n not in (None, m) for n, m in zip(shape, got, strict=True))
    ):
        need = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{what} must have shape ({need}) for these inputs; got {got}.")
    if not is_tensor(array):
        return like(array, x) if is_tensor(x) else array
    if not is_tensor(x):
        raise ValueError(f"{what} is a torch tensor, the inputs are not; pass both of one kind.")
    if array.device != x.device:
        raise ValueError(f"{what} is on {array.device}, the inputs on {x.device}; bring them together.")
    return array
