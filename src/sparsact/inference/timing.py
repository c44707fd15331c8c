"""Seconds of ways to compute the same, taken in turns so that load on the machine meets all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import torch
from torch import Tensor

MIN_ROUNDS: Final = 3


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

    def seconds(before: torch.cuda.Event, after: torch.cuda.Event) -> float:
        after.synchronize()
        return 1e-3 * float(before.elapsed_time(after))

    return Clock(mark, seconds)


def working_seconds() -> Callable[[], float]:
    """The clock for times of a model: of this thread's work if torch has one thread, else of the wall.

    Other processes slow the wall's clock down, and long calls more than short ones: they would make the slower of two
    models look slower still.
    """
    return time.thread_time if torch.get_num_threads() == 1 else time.perf_counter


@dataclass(frozen=True)
class Side:
    """A way to compute: the context that its calls need, and the calls of a round, by its number."""

    within: Callable[[], AbstractContextManager[object]]
    calls: Callable[[int], Sequence[Callable[[], object]]]


def timed_rounds(
    sides: Sequence[Side], clock: Clock, rounds: int, time_limit: float = inf, *, in_cache: bool = False
) -> list[list[list[float]]]:
    """Seconds of every call of every side in each round: ``found[round][side][call]``.

    The sides take turns in going first, and a first round is not counted. With ``in_cache`` the calls of a side run
    once before they are timed: their weights are then in the cache, or out of it, as when they run alone. After
    ``time_limit`` seconds no further round starts, once there are three.
    """
    found: list[list[list[float]]] = []
    begin = time.perf_counter()
    for turn in range(rounds + 1):
        if turn > MIN_ROUNDS and time.perf_counter() - begin > time_limit:
            break
        marks: list[list[tuple[Any, Any]]] = [[] for _ in sides]
        places = range(len(sides))
        for place in reversed(places) if turn % 2 else places:
            calls = sides[place].calls(turn)
            with sides[place].within():
                if in_cache:
                    for run in calls:
                        run()
                for run in calls:
                    before = clock.mark()
                    run()
                    marks[place].append((before, clock.mark()))
        if turn:  # a GPU is still at work
            found.append([[clock.seconds(*pair) for pair in pairs] for pairs in marks])
    return found
