"""Inputs of a model: one batch or several, each a tensor, positional arguments or keyword arguments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.split_experts import showing_all_experts

Batch = Tensor | Mapping[str, Any] | tuple[Any, ...]
Inputs = Batch | Iterable[Batch]


def batches(inputs: Inputs) -> Iterator[Batch]:
    """The batches of ``inputs``: a tensor, a mapping or a tuple is one batch, anything else holds several.

    Raises
    ------
    TypeError
        If ``inputs``, or a batch in it, is none of these.
    ValueError
        If it holds no batch.
    """
    if isinstance(inputs, Tensor | Mapping | tuple):
        yield inputs
        return
    if not isinstance(inputs, Iterable):
        raise TypeError(
            "`inputs` must be a tensor, a mapping of keyword arguments, a tuple of arguments, or an iterable of these; "
            f"got {type(inputs).__name__}."
        )
    seen = False
    for batch in inputs:
        seen = True
        if not isinstance(batch, Tensor | Mapping | tuple):
            raise TypeError(
                "a batch must be a tensor, a mapping of keyword arguments or a tuple of arguments; "
                f"got {type(batch).__name__}: pass torch.as_tensor of an array, tuple(batch) of a list of arguments."
            )
        yield batch
    if not seen:
        raise ValueError("`inputs` holds no batch; pass at least one.")


def call(model: nn.Module, batch: Batch) -> Any:
    """The model's output for a batch."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple) else model(batch)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, without gradients; each module returns to its mode afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def observed(model: nn.Module, names: Iterable[str], seen: Callable[[str, Any, Any], object]) -> Iterator[None]:
    """Call ``seen(name, args, output)`` after each call of these modules; named arguments come after the others."""
    with ExitStack() as stack:
        stack.enter_context(showing_all_experts(model))
        for name in dict.fromkeys(names):

            def hook(module: nn.Module, args: Any, kwargs: Any, output: Any, name: str = name) -> None:
                seen(name, (*args, *kwargs.values()), output)

            stack.callback(model.get_submodule(name).register_forward_hook(hook, with_kwargs=True).remove)
        yield


@dataclass(frozen=True)
class Clock:
    """Marks in the work of a device, and the seconds from one to another."""

    mark: Callable[[], Any]
    seconds: Callable[[Any, Any], float]


def clock_of(tensors: Iterable[Tensor]) -> Clock:
    """A clock of work on these tensors: CUDA events where one of them is on a GPU, else :func:`working_seconds`."""
    device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
    if device is not None:
        stream: Any = torch.cuda.current_stream(device)
        event: Any = torch.cuda.Event
        return event_clock(lambda: stream.record_event(event(enable_timing=True)))
    return Clock(working_seconds(), lambda before, after: after - before)


def event_clock(mark: Callable[[], Any]) -> Clock:
    """A clock of events that the device passes while the host goes on; asking for seconds waits for the later one."""

    def seconds(before: Any, after: Any) -> float:
        after.synchronize()
        return 1e-3 * float(before.elapsed_time(after))

    return Clock(mark, seconds)


def working_seconds() -> Callable[[], float]:
    """The clock for times of a model: of this thread's work if torch has one thread, else of the wall.

    Other processes slow the wall's clock down, and long calls more than short ones: they would make the slower of two
    models look slower still.
    """
    return time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
