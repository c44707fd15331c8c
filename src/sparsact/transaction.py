"""Updates that happen whole or not at all: after an interrupt or an error, and for a reader in another thread."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock, current_thread, main_thread
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # not attributes: a copy or a pickle must not hold a lock


def lock_of(thing: Any) -> Any:
    """The re-entrant lock of an object. A copy, a clone and an unpickled object have their own."""
    return _locks.setdefault(thing, RLock())  # one step of a dict: no other lock, which an interrupt could leave held


if hasattr(os, "register_at_fork"):  # locks that threads of the parent process held are dropped
    os.register_at_fork(after_in_child=_locks.clear)


def locked(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a method hold the lock of its object."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with lock_of(self):
            return method(self, *args, **kwargs)

    return run


def transaction(method: Callable[Concatenate[S, P], Any]) -> Callable[Concatenate[S, P], S]:
    """Make a method of an estimator all or nothing; it returns the estimator.

    The method runs on a twin, whose attributes replace the estimator's own by one assignment when it returns. After
    an error or an interrupt they are unchanged. The locks of the estimator, and of one that is merged into it, are
    held throughout.

    The class has a method ``_fork``, called on the twin. It gives the twin its own copy of everything that updates
    change in place, or lets it note the changes. It returns a function of one bool: True makes the noted changes and
    cannot fail, False drops them. An interrupt that arrives in the meantime is raised when the update is complete.

    Notes
    -----
    Everything is in one frame and the locks are written in C, because an interrupt may arrive at the first instruction
    of an ``__exit__`` that is written in Python, which then does nothing.
    """
    method.__annotations__["return"] = "Self"  # for help() and signature()

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> S:
        others = [thing for thing in (*args, *kwargs.values()) if isinstance(thing, type(self))]
        first, second = sorted((self, others[0] if others else self), key=id)  # one order: no deadlock
        with lock_of(first), lock_of(second):
            twin = twin_of(self)
            finish: Callable[[bool], None] = twin._fork()  # type: ignore[attr-defined]
            try:
                method(twin, *args, **kwargs)
                with uninterrupted():
                    finish(True)
                    self.__dict__ = twin.__dict__
            except BaseException:
                with uninterrupted():
                    if self.__dict__ is not twin.__dict__:
                        finish(False)
                raise
        return self

    return run


def twin_of(thing: S) -> S:
    """Another object with the same attributes, and a lock of its own."""
    twin = object.__new__(type(thing))
    twin.__dict__.update(thing.__dict__)
    return twin


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, which must be short. Only the main thread receives signals."""
    handler = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    if not callable(handler):
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: arrived.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(*arrived[0])
