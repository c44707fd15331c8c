"""What ``n_jobs`` means to a kernel."""

from __future__ import annotations

from operator import index

AS_ALLOWED = 0


def threads(n_jobs: int | None) -> int:
    """Number of threads for a kernel, from the ``n_jobs`` of its caller.

    ``None`` leaves it to OpenMP (the result is 0), which obeys ``OMP_NUM_THREADS`` and ``threadpoolctl``; ``-1`` is
    every core, ``-2`` all but one, and so on as in joblib. Native kernels alone have threads, and no result depends on
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
        return index(n_jobs)
    from joblib import effective_n_jobs  # slow to import, and seldom needed

    return int(effective_n_jobs(n_jobs))
