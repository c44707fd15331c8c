"""Run several fits at once, each in a thread.

Each leaves BLAS and OpenMP one thread: teams of threads that wait for one another in busy loops are slow on cores that
others use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from sparsact.kernels.dispatch import blas_threads

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Run tasks in as many threads as OpenMP would take, and yield their results in order."""
    openmp = ThreadpoolController().select(user_api="openmp")
    n_threads = max((library["num_threads"] for library in openmp.info()), default=1)

    def with_one_thread(task: Task) -> Result:
        with openmp.limit(limits=1):  # of this thread
            return function(task)

    with blas_threads(0), ThreadPoolExecutor(n_threads) as threads:
        yield from threads.map(with_one_thread, tasks)
