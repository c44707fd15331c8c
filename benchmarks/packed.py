"""Kernels of packed bits and polynomials, one thread, on every instruction set of this processor.

Each kernel has a goal for the widest set (AVX-512) and a floor beside it:

- ``pack_columns``: goal 3 ms for 100,000 x 20 doubles by rows. Floor: ``np.max`` of the same array, which reads it
  once.
- ``parity_counts``: goal 0.1 s for all 251,176 subsets of at most 4 of 50 columns of 100,000 rows. Roofline: a load,
  an xor, a popcount and an add for each 8 words; at two vector operations a cycle, 1.5 cycles.
- ``evaluate``: goal 25 ms for 100,000 rows and about 1,300 monomials. Roofline: for each 8 values a product for the
  monomial, shared by all T polynomials, and a product and a sum for each; at two a cycle, 1 + 0.5 / T cycles.
- ``symmetric_differences``: goals 50 ms (1,276 subsets) and 1.5 s (5,051). Floor: ``position`` written once.
- ``subsets_in_order`` and ``ranked_gram``, which serve the same subsets when they are all of those sizes: goals 5 and
  100 ms, 10 and 200 ms. Floor: the result written once.

Rooflines in time take the clock of ``--ghz``. Unit: milliseconds, the least of repeats taken in turns, and picoseconds
per piece of work on the widest set.

    python -m benchmarks.packed [--ghz 2.6] [--out results/packed.jsonl]
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.figures import Figure, judged
from benchmarks.harness import interleaved
from benchmarks.program import option, program
from sparsact import kernels
from sparsact.hypercube import subset_masks
from sparsact.kernels import dispatch

ISAS: Final = ("portable", "avx2", "avx512")
M = 100_000


@dataclass(frozen=True)
class PackedWork:
    """One row of the table: what runs, how much of it there is, what it should take at most, and what at least."""

    name: str
    run: Callable[[], object]
    pieces: int
    piece: str
    goal_ms: float
    floor: Callable[[], object] | float  # something to time beside it, or cycles
    repeats: int = 7


def packing(rng: np.random.Generator) -> list[PackedWork]:
    """Packing by rows, by columns and with gaps, and transposing what was packed."""
    X = 1.0 - 2.0 * rng.integers(0, 2, size=(M, 20))
    by_columns, gaps = np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]
    small = X.astype(np.int8)
    columns, _ = kernels.pack_columns(X, 1, -1)
    tables = {"float64 by rows": X, "float64 by columns": by_columns, "float64 with gaps": gaps, "int8 by rows": small}
    works = [
        PackedWork(
            f"pack_columns, {name}",
            lambda table=table: kernels.pack_columns(table, 1, -1),
            X.size,
            "element",
            3.0,
            lambda table=table: np.max(table),
        )
        for name, table in tables.items()
    ]
    transpose = PackedWork(
        "transpose_bits, 20 x 100k", lambda: kernels.transpose_bits(columns, M), M, "row", 1.0, columns.copy
    )
    return [*works, transpose]


def parities(rng: np.random.Generator) -> list[PackedWork]:
    """One plane and many subsets; many planes and few subsets."""
    words = -(-M // 64)
    columns = rng.integers(0, 2**64, size=(50, words), dtype=np.uint64)
    wide = rng.integers(0, 2**64, size=(100, 1000), dtype=np.uint64)
    planes = rng.integers(0, 2**64, size=(70, 1000), dtype=np.uint64)
    lexicographic = subset_masks(50, 4)
    orders = {
        "numeric order": lexicographic[np.lexsort(lexicographic.T)],
        "lexicographic": lexicographic,
        "shuffled": rng.permutation(lexicographic),
    }
    plane = np.full((1, words), 2**64 - 1, dtype=np.uint64)
    pairs = subset_masks(100, 2)
    works = [
        PackedWork(
            f"parity_counts, n = 50, <= 4, {name}",
            lambda masks=masks: kernels.parity_counts(columns, plane, masks),
            len(masks) * words,
            "word",
            100.0,
            len(masks) * words * 1.5 / 8,
            repeats=3,
        )
        for name, masks in orders.items()
    ]
    n_words = len(planes) * len(pairs) * 1000
    many = PackedWork(
        "parity_counts, n = 100, <= 2, 70 planes",
        lambda: kernels.parity_counts(wide, planes, pairs),
        n_words,
        "word",
        100.0,
        n_words * 1.5 / 8,
        repeats=3,
    )
    return [*works, many]


def polynomials(rng: np.random.Generator) -> list[PackedWork]:
    """Real and packed points, one polynomial and ten."""
    works = []
    for n, degree in ((20, 3), (50, 2)):
        X = 1.0 - 2.0 * rng.integers(0, 2, size=(M, n))
        columns, _ = kernels.pack_columns(X, 1, -1)
        masks = subset_masks(n, degree)
        for n_targets in (1, 10):
            coefficients = rng.standard_normal((len(masks), n_targets))
            values = M * len(masks) * n_targets
            title = f"n = {n}, <= {degree}, T = {n_targets}"
            works += [
                PackedWork(
                    f"evaluate, {title}",
                    lambda X=X, masks=masks, c=coefficients: kernels.evaluate(X, masks, c),
                    values,
                    "monomial",
                    25.0 * n_targets,
                    values * (1 + 0.5 / n_targets) / 8,
                ),
                PackedWork(
                    f"evaluate_packed, {title}",
                    lambda p=columns, masks=masks, c=coefficients: kernels.evaluate_packed(p, M, masks, c),
                    values,
                    "monomial",
                    25.0 * n_targets,
                    values * (1 + 0.5 / n_targets) / 8,
                ),
            ]
    return works


def differences() -> list[PackedWork]:
    """All pairs of subsets of at most two coordinates."""
    works = []
    for n, goal_ms, repeats in ((50, 50.0, 5), (100, 1500.0, 1)):
        masks = subset_masks(n, 2)
        position = np.empty((len(masks), len(masks)), dtype=np.int32)
        works.append(
            PackedWork(
                f"symmetric_differences, n = {n}, <= 2",
                lambda masks=masks: kernels.symmetric_differences(masks),
                len(masks) * (len(masks) - 1) // 2,
                "pair",
                goal_ms,
                lambda position=position: position.fill(1),
                repeats,
            )
        )
    return works


def ranked(rng: np.random.Generator) -> list[PackedWork]:
    """All subsets of at most four coordinates, and their moments arranged by pairs of subsets of at most two."""
    works = []
    for n, subsets_ms, gram_ms, repeats in ((50, 5.0, 10.0, 5), (100, 100.0, 200.0, 3)):
        masks, subsets = subset_masks(n, 2), kernels.subsets_in_order(n, 4)
        moments = rng.normal(size=len(subsets))
        shape, square = subsets.shape, (len(masks), len(masks))
        works += [
            PackedWork(
                f"subsets_in_order, n = {n}, <= 4",
                lambda n=n: kernels.subsets_in_order(n, 4),
                len(subsets),
                "subset",
                subsets_ms,
                lambda shape=shape: np.empty(shape, dtype=np.uint64).fill(1),
                repeats,
            ),
            PackedWork(
                f"ranked_gram, n = {n}, <= 2",
                lambda n=n, masks=masks, moments=moments: kernels.ranked_gram(masks, moments, n, 4),
                len(masks) * (len(masks) + 1) // 2,
                "pair",
                gram_ms,
                lambda square=square: np.empty(square).fill(1),
                repeats,
            ),
        ]
    return works


def measure(work: PackedWork, isas: list[str], ghz: float, quick: bool) -> list[Figure]:
    """Least milliseconds on each instruction set, the floor, and the goal of the widest set."""

    def on(isa: str) -> Callable[[], object]:
        def run() -> object:
            with kernels.using("native", isa):
                return work.run()

        return run

    calls = {isa: on(isa) for isa in isas}
    if callable(work.floor):
        calls["floor"] = work.floor
    ms = {name: 1e3 * min(times) for name, times in interleaved(calls, work.repeats).items()}
    if not callable(work.floor):
        ms["floor"] = work.floor / ghz / 1e6
    best = ms[isas[-1]]
    return [
        *(Figure(work.name, name, value, "ms") for name, value in ms.items() if name != isas[-1]),
        Figure(work.name, isas[-1], best, "ms", most=judged(work.goal_ms, quick)),
        Figure(work.name, f"a {work.piece}", 1e9 * best / work.pieces, "ps"),
    ]


@program(
    option("--ghz", type=float, default=2.6, help="clock of the rooflines"),
    option("--only", default="", help="measure the kernels whose title holds this text"),
    repeats=7,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    isas = list(ISAS[: ISAS.index(dispatch.native.widest_isa()) + 1])
    rng = np.random.default_rng(2024)
    works = [*packing(rng), *parities(rng), *polynomials(rng), *differences(), *ranked(rng)]
    figures = []
    for work in works[:: 5 if arguments.quick else 1]:
        if arguments.only in work.name:
            figures += measure(work, isas, arguments.ghz, arguments.quick)
    return figures
