"""Checks of the hyperparameters, states and inputs of routers."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

from sparsact.checks import checked_floats, checked_reals, checked_size
from sparsact.routing.backend import is_tensor, like

LARGEST_SEED = 2**63 - 1


def sizes(router: Any, *names: str, least: int = 1, optional: bool = False) -> None:
    """Hyperparameters that are integers, ``least`` or more; None too where they are ``optional``."""
    for name in names:
        value = getattr(router, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"`{name}` of {type(router).__name__} must be an integer; got {value!r}.")
        object.__setattr__(router, name, checked_size(value, f"`{name}` of {type(router).__name__}", least))


def seed(router: Any) -> None:
    """The seed of a hash: an integer below 2**63."""
    sizes(router, "seed", least=0)
    if router.seed > LARGEST_SEED:
        raise ValueError(f"`seed` of {type(router).__name__} must be below 2**63; got {router.seed}.")


def numbers(router: Any, *names: str, positive: bool = False, optional: bool = False) -> None:
    """Hyperparameters that are finite, and not negative; above 0 where they must be ``positive``."""
    for name in names:
        value = getattr(router, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"`{name}` of {type(router).__name__} must be a number; got {value!r}.")
        if not isfinite(value) or value < 0 or (positive and value == 0):
            need = "positive" if positive else "0 or more"
            raise ValueError(f"`{name}` of {type(router).__name__} must be finite and {need}; got {value!r}.")
        object.__setattr__(router, name, float(value))


def flag(router: Any, name: str) -> None:
    """A hyperparameter that is True or False."""
    if not isinstance(getattr(router, name), bool):
        raise TypeError(f"`{name}` of {type(router).__name__} must be True or False; got {getattr(router, name)!r}.")


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
