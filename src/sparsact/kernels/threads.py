"""What ``n_jobs`` means to a kernel."""

from __future__ import annotations

import os
from operator import index

AS_ALLOWED = 0
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
