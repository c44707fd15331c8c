"""Which exact route a fit takes, why, and whether it fits in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparsact.hypercube import n_subsets, n_words
from sparsact.learners.low_degree.family import Family
from sparsact.memory import free_memory
from sparsact.saving.schema import as_count

Route = Literal["cells", "moments", "kernel", "dense"]
MAX_CELLS_N = 24
_MAX_CHOLESKY = 3000
_LIMBS = 5  # of a typical double and its weight


@dataclass(frozen=True)
class Size:
    """What decides the cost of a fit: n coordinates, D monomials, m rows, T targets."""

    n: int
    n_monomials: int
    n_rows: int
    n_targets: int
    span: tuple[int, int] | None


@dataclass(frozen=True)
class SolverPlan:
    """A route, the way its equations are solved, the reason, and the bytes it needs at the peak (an estimate)."""

    solver: Route
    iterative: bool
    reason: str
    nbytes: float


def available_memory() -> float:
    """Bytes that a fit may use by default: 80 % of what the machine, or the container, has free."""
    return 0.8 * float(free_memory())


def prefers_cells(n: int, n_rows: int) -> bool:
    """Whether a table of 2**n cells is the cheaper statistic of so many rows."""
    return n <= MAX_CELLS_N and 32 * n_rows >= 2**n


def cells_bytes(n: int, n_targets: int) -> float:
    """Bytes of the sums of 2**n cells, with what one transform of them needs."""
    cells = 2.0 ** min(n, 1000)  # beyond the range of floats it is out of the question all the same
    return 8.0 * cells * (2 * _LIMBS * (1 + n_targets) + 3)


def prefers_moments(size: Size) -> bool:
    """Whether moments are the cheaper statistic: many more rows than monomials."""
    return size.n_rows >= max(4 * size.n_monomials, 1 << 16) and size.n_monomials <= 4 * _MAX_CHOLESKY


def plan(size: Size, solver: str, limit: float, *, written: bool = False, rows_kept: bool = True) -> SolverPlan:
    """The route for a fit.

    Parameters
    ----------
    size : Size
        Of the problem.
    solver : {"auto", "cells", "moments", "kernel", "dense"}
        The route asked for; ``"dense"`` is that of real columns.
    limit : float
        Bytes that may be used.
    written : bool
        Whether the Gram matrix must be written out (for the lasso and for heredity).
    rows_kept : bool
        Whether the rows themselves are still there.

    Raises
    ------
    ValueError
        If the kernel, or cells, are asked for where they cannot serve.
    MemoryError
        If no route that ``solver`` allows fits in ``limit`` bytes; names the sizes and the nearest degree that would.
    """
    if solver == "kernel" and (size.span is None or written):
        raise ValueError(
            'solver="kernel" serves least squares on all subsets of the sizes; pass solver="auto" for a list of '
            "subsets, the lasso or heredity."
        )
    if solver in ("cells", "kernel") and not rows_kept:
        raise ValueError(f'the rows were summed into moments and are gone; fit with solver="{solver}" from the start.')
    routes = _candidates(size, solver, written, rows_kept)
    fitting = [route for route in routes if route.nbytes <= limit]
    if not fitting:
        cheapest = min(routes, key=lambda route: route.nbytes)
        raise MemoryError(_refusal(size, cheapest, limit, lambda other: _candidates(other, solver, written, rows_kept)))
    return fitting[0]


def _candidates(size: Size, solver: str, written: bool = False, rows_kept: bool = True) -> list[SolverPlan]:
    """Every route that can serve, the preferred first."""
    if solver != "auto":
        return [_route(size, solver, written)]
    order: list[str] = []
    if size.n_monomials > size.n_rows and size.span is not None and rows_kept and not written:
        order.append("kernel")
    if prefers_cells(size.n, size.n_rows) and rows_kept:
        order.append("cells")
    order.append("moments")
    if size.n <= MAX_CELLS_N and rows_kept and "cells" not in order:
        order.append("cells")
    return [_route(size, name, written) for name in order]


def _route(size: Size, solver: str, written: bool) -> SolverPlan:
    n, d, m = size.n, size.n_monomials, size.n_rows
    own = 16.0 * d * n_words(n) + 8.0 * d * (size.n_targets + 4)
    if solver == "kernel":
        reason = f"{d:,} monomials exceed the {m:,} rows: the kernel over Hamming distances is the smaller system"
        return SolverPlan("kernel", False, reason, 28.0 * m * m + own)
    if solver == "dense":
        return SolverPlan("dense", False, f"real columns: {d:,} monomials by matrix products", own + 36.0 * d * d)
    table = cells_bytes(n, size.n_targets)
    iterative = not written and d > _MAX_CHOLESKY and (m >= 2 * d or 28.0 * d * d > table)
    if solver == "cells":
        how = "conjugate gradients, two transforms a product" if iterative else "Cholesky"
        reason = (
            f"n = {n} is small: 2^{n} cells and Walsh-Hadamard transforms give every moment; {d:,} monomials by {how}"
        )
        return SolverPlan("cells", iterative, reason, table + own + (0.0 if iterative else 28.0 * d * d))
    differences = min(d * (d + 1) / 2.0, float(n_subsets(n, 2 * size.span[1])) if size.span else float("inf"))
    ranked = size.span is not None and size.span[0] == 1  # no search for the differences, no place of every pair
    nbytes = differences * ((8.0 if ranked else 24.0) * n_words(n) + 40) + (28.0 if ranked else 32.0) * d * d
    nbytes += own + 48.0 * min(m, 1 << 18)
    reason = f"n = {n} with {m:,} rows: the Gram matrix of {d:,} monomials from popcount moments of their differences"
    return SolverPlan("moments", False, reason, nbytes)


def _refusal(size: Size, cheapest: SolverPlan, limit: float, routes: Callable[[Size], list[SolverPlan]]) -> str:
    over = f" over {size.n_rows:,} rows" if size.n_rows else ""
    need = (
        f"{size.n_monomials:,} monomials of {size.n} coordinates{over} need about "
        f"{_amount(cheapest.nbytes)} ({cheapest.solver}), and {_amount(limit)} may be used"
    )
    if size.span is None:
        return f"{need}; pass fewer subsets, or a larger max_memory."
    for degree in range(size.span[1] - 1, size.span[0] - 1, -1):
        smaller = Size(
            size.n, Family.count(size.n, degree, size.span[0]), size.n_rows, size.n_targets, (size.span[0], degree)
        )
        if any(route.nbytes <= limit for route in routes(smaller)):
            return f"{need}; degree={degree} fits, or pass a larger max_memory."
    return f"{need}; no lower degree fits either: pass a larger max_memory."


def _amount(nbytes: float) -> str:
    return f"{nbytes / 2**30:,.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.3g} MiB"


def spanned(n: int, span: tuple[int, int], due: int | None = None) -> Family:
    """All subsets of those sizes, unless there are more than memory holds, or not as many as are due."""
    low, high = (as_count(size, "span") for size in span)
    if not low <= n or not high <= n:
        raise ValueError(f"degrees {low} to {high} of {n} coordinates")
    count = Family.count(n, high, low)
    if due not in (None, count) or 8.0 * n_words(n) * count > available_memory():
        raise ValueError(f"{count} subsets of {low} to {high} of {n} coordinates, where there are {due or 'fewer'}")
    return Family.full(n, high, low)
