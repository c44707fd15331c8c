"""How many threads a kernel and BLAS use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from operator import index
from typing import Any

AS_ALLOWED = 0
WORTH_BLAS_THREADS = 2e9  # multiplications: about a tenth of a second on one core
MOST = max(16, os.cpu_count() or 1)  # more gain nothing, and a system that has no more threads ends the process


def threads(n_jobs: int | None) -> int:
    """Number of threads for a kernel, from the ``n_jobs`` of its caller.

    ``None`` leaves it to OpenMP (the result is 0), which obeys ``OMP_NUM_THREADS`` and ``threadpoolctl``; ``-1`` is
    every core, ``-2`` all but one, and so on as in joblib. No more are used than there are cores, or 16 where there are
    fewer. Native kernels alone have threads, and no result depends on
    their number.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0.

    >>> threads(3), threads(None)
    (3, 0)
    """
    if n_jobs is None:
        return AS_ALLOWED
    if index(n_jobs) == 0:
        raise ValueError("`n_jobs` is 0; pass a number of threads, -1 for every core, or None for OpenMP's own choice.")
    if n_jobs > 0:
        return min(index(n_jobs), MOST)
    from joblib import effective_n_jobs  # slow to import, and seldom needed

    return min(int(effective_n_jobs(n_jobs)), MOST)


@contextmanager
def blas_threads(operations: float) -> Iterator[None]:
    """One BLAS thread for dense linear algebra of at most 2e9 multiplications; larger work keeps what is allowed.

    OpenBLAS's threads wait for one another in a busy loop. On cores that others use as well, a product of a millisecond
    then takes tens of them, while a second thread could save half a millisecond. The limit holds for the whole process.
    Of several threads inside such blocks one sets and ends it, as ``threadpoolctl`` documents; results do not change.

    Use it as ``with blas_threads(D**3):`` or, above a function whose products are all small, ``@blas_threads(0)``.
    """
    if operations > WORTH_BLAS_THREADS:
        yield
    else:
        with _blas().limit(limits=1):
            yield


@cache
def _blas() -> Any:
    """The BLAS libraries of NumPy and SciPy; to find them takes milliseconds, to limit them microseconds."""
    import scipy.linalg  # noqa: F401 # brings a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
