"""All bounds in one list: what each states, how far it is proved, what it needs. The command and the docs print it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal

from sparsact.bounds import buckets, hardness, learning, lipschitz, rademacher, sensitivity
from sparsact.bounds.meaning import complete

Status = Literal["proved", "ours", "conjectured", "shape only"]

MEANING: dict[str, str] = {
    "proved": "a theorem with its constants",
    "ours": "a theorem of this library, proved in its documentation",
    "conjectured": "a conjecture, or a consequence of one",
    "shape only": "a theorem whose constants are unspecified: they are arguments, 1 unless given",
}


@dataclass(frozen=True)
class Entry:
    """One bound: the statement as its paper (A or B) numbers it, or ours; what it ``gives``; the function."""

    statement: str
    paper: Literal["A", "B", "ours"]
    status: Status
    gives: str
    function: Callable[..., Any]
    log2: Callable[..., float] | None = None

    @property
    def name(self) -> str:
        """Name of the function in :mod:`sparsact.bounds`."""
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what the function needs."""
        return tuple(name for name, p in signature(self.function).parameters.items() if p.default is Parameter.empty)

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of what it takes beside that, with a default: unspecified constants, a confidence."""
        return tuple(
            name for name, p in signature(self.function).parameters.items() if p.default is not Parameter.empty
        )


BOUNDS: tuple[Entry, ...] = (
    Entry(
        "Lemma 6", "A", "proved", "average sensitivity of a halfspace, at most", sensitivity.halfspace_sensitivity_bound
    ),
    Entry("Lemma 9", "A", "shape only", "average sensitivity, at most", sensitivity.average_sensitivity_bound_paper),
    Entry("sharper Lemma 9", "ours", "ours", "average sensitivity, at most", sensitivity.average_sensitivity_bound),
    Entry(
        "sharper Remark 11",
        "ours",
        "ours",
        "average sensitivity by activity, at most",
        sensitivity.average_sensitivity_bound_by_activity,
    ),
    Entry("Lemma 10", "A", "shape only", "noise sensitivity, at most", sensitivity.noise_sensitivity_bound_paper),
    Entry("sharper Lemma 10", "ours", "ours", "noise sensitivity, at most", sensitivity.noise_sensitivity_bound),
    Entry("tail above a degree", "ours", "ours", "weight above the degree, at most", sensitivity.tail_bound),
    Entry("degree enough", "ours", "ours", "degree enough for epsilon", sensitivity.sufficient_degree),
    Entry(
        "degree enough",
        "A",
        "proved",
        "degree enough, from the average sensitivity",
        sensitivity.degree_from_sensitivity,
    ),
    Entry("Claim 2.1", "A", "proved", "weight above the degree, at most", learning.tail_from_noise),
    Entry("Claim 2.1", "A", "proved", "degree enough, from the noise sensitivity", learning.degree_from_noise),
    Entry("Theorem 8, C", "A", "proved", "magnitude C of a function, at most", learning.largest_value),
    Entry(
        "Lemma 7",
        "A",
        "shape only",
        "rows of the low-degree algorithm",
        learning.low_degree_samples,
        learning.log2_low_degree_samples,
    ),
    Entry("Theorem 8, degree", "A", "shape only", "degree enough for epsilon", learning.uniform_degree),
    Entry(
        "Theorem 8", "A", "shape only", "rows, uniform inputs", learning.uniform_samples, learning.log2_uniform_samples
    ),
    Entry(
        "sharper Theorem 8",
        "ours",
        "ours",
        "rows, uniform inputs, at the sharper degree",
        learning.sparse_samples,
        learning.log2_sparse_samples,
    ),
    Entry("Theorem 13", "A", "proved", "size of a network for any p-junta", hardness.junta_size),
    Entry(
        "Theorem 13",
        "A",
        "conjectured",
        "time to learn 1-sparse networks, at least",
        hardness.junta_time,
        hardness.log2_junta_time,
    ),
    Entry(
        "Theorem 14",
        "A",
        "shape only",
        "statistical queries, at least",
        hardness.parity_queries,
        hardness.log2_parity_queries,
    ),
    Entry("Section 4, parity", "A", "proved", "size of a network for a lifted parity", hardness.lifted_parity_size),
    Entry("Section 4, rounding", "A", "proved", "units of a network for lifted rounding", hardness.rounding_units),
    Entry("Lemma 18", "A", "proved", "rows, from a Rademacher complexity", learning.samples_from_rademacher),
    Entry("Theorem 17", "A", "shape only", "rows, any distribution", learning.general_samples),
    Entry("Theorem 17 with constants", "ours", "ours", "rows, any distribution", rademacher.general_samples_explicit),
    Entry(
        "dense class", "A", "proved", "Rademacher complexity, dense class, at most", rademacher.dense_complexity_bound
    ),
    Entry("Theorem 19, (15)", "A", "shape only", "Rademacher complexity, at most", rademacher.sparse_complexity_bound),
    Entry(
        "(15) with constants",
        "ours",
        "ours",
        "Rademacher complexity, at most",
        rademacher.sparse_complexity_bound_explicit,
    ),
    Entry(
        "Conjecture 20", "A", "conjectured", "Rademacher complexity, at most", rademacher.sparse_complexity_conjecture
    ),
    Entry(
        "Theorem 4.1, table", "B", "shape only", "buckets of the table", lipschitz.table_size, lipschitz.log2_table_size
    ),
    Entry("Theorem 4.1, samples", "B", "shape only", "samples for the table", lipschitz.table_samples),
    Entry("Theorem 4.1, time", "B", "shape only", "operations of a prediction", lipschitz.forward_operations),
    Entry(
        "Theorem 4.2",
        "B",
        "shape only",
        "width of a dense model, at least",
        lipschitz.dense_width,
        lipschitz.log2_dense_width,
    ),
    Entry("Lemma B.1, diameter", "B", "proved", "diameter of a bucket, at most", buckets.bucket_diameter),
    Entry("Lemma B.1, buckets", "B", "shape only", "buckets, at most", buckets.bucket_count),
    Entry("Lemma B.1, buckets", "ours", "ours", "buckets, at most", buckets.bucket_count_of_cuts),
    Entry(
        "Theorem C.1",
        "B",
        "shape only",
        "buckets of the table, as stated",
        lipschitz.manifold_table_size,
        lipschitz.log2_manifold_table_size,
    ),
    Entry(
        "Theorem C.1, proof",
        "B",
        "shape only",
        "buckets of the table, as proved",
        lipschitz.manifold_table_size_proof,
        lipschitz.log2_manifold_table_size_proof,
    ),
    Entry("Theorem C.1, samples", "B", "shape only", "samples for the table", lipschitz.manifold_samples),
    Entry("Lemma C.2", "B", "proved", "probability that a bucket holds a ball, at least", buckets.ball_within_bucket),
    Entry("Lemma C.3", "B", "shape only", "hash tables", lipschitz.manifold_tables),
    Entry(
        "Theorem D.1",
        "B",
        "shape only",
        "width of a dense model, as printed",
        lipschitz.analytic_width_paper,
        lipschitz.log2_analytic_width_paper,
    ),
    Entry(
        "Theorem D.1, samples",
        "B",
        "shape only",
        "samples of a dense model, as printed",
        lipschitz.analytic_samples_paper,
    ),
    Entry(
        "Theorem D.1, mended",
        "ours",
        "ours",
        "width of a dense model, at least",
        lipschitz.analytic_width,
        lipschitz.log2_analytic_width,
    ),
    Entry(
        "Theorem D.1, mended samples",
        "B",
        "shape only",
        "samples of a dense model, at least",
        lipschitz.analytic_samples,
    ),
)
"""In the order of the papers, our own beside what they sharpen."""

for _entry in BOUNDS:
    complete(_entry.function, _entry.gives)
    if _entry.log2 is not None:
        complete(_entry.log2, f"base-2 logarithm of the {_entry.gives}")
