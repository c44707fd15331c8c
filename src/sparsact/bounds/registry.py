"""All bounds in one list: what each states, how far it is proved, what it needs. The command and the docs print it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, cleandoc, signature
from typing import Any, Literal

from sparsact.bounds import hardness, learning, lipschitz, rademacher, sensitivity

Status = Literal["proved", "ours", "conjectured", "shape only"]

MEANING: dict[str, str] = {
    "proved": "a theorem with its constants",
    "ours": "a theorem of this library, proved in its documentation",
    "conjectured": "a conjecture, or a consequence of one",
    "shape only": "a theorem whose constants are unspecified: they are arguments, 1 unless given",
}


@dataclass(frozen=True)
class Entry:
    """One bound: ``statement`` as the papers number it, with the paper (A, B, or ours), and the function."""

    statement: str
    paper: Literal["A", "B", "ours"]
    status: Status
    function: Callable[..., Any]
    log2: Callable[..., float] | None = None

    @property
    def name(self) -> str:
        """Name of the function in :mod:`sparsact.bounds`."""
        return self.function.__name__

    @property
    def meaning(self) -> str:
        """First sentence of the function's documentation, without its formula."""
        return cleandoc(self.function.__doc__ or "").split("\n")[0].split(":math:")[0].rstrip(" .:=")

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
    Entry("Lemma 6", "A", "proved", sensitivity.halfspace_sensitivity_bound),
    Entry("Lemma 9", "A", "shape only", sensitivity.average_sensitivity_bound_paper),
    Entry("sharper Lemma 9", "ours", "ours", sensitivity.average_sensitivity_bound),
    Entry("sharper Remark 11", "ours", "ours", sensitivity.average_sensitivity_bound_by_activity),
    Entry("Lemma 10", "A", "shape only", sensitivity.noise_sensitivity_bound_paper),
    Entry("sharper Lemma 10", "ours", "ours", sensitivity.noise_sensitivity_bound),
    Entry("tail above a degree", "ours", "ours", sensitivity.tail_bound),
    Entry("degree enough", "ours", "ours", sensitivity.sufficient_degree),
    Entry("degree enough", "A", "proved", sensitivity.degree_from_sensitivity),
    Entry("Claim 2.1", "A", "proved", learning.tail_from_noise),
    Entry("Claim 2.1", "A", "proved", learning.degree_from_noise),
    Entry("Theorem 8, C", "A", "proved", learning.largest_value),
    Entry("Lemma 7", "A", "shape only", learning.low_degree_samples, learning.log2_low_degree_samples),
    Entry("Theorem 8, degree", "A", "shape only", learning.uniform_degree),
    Entry("Theorem 8", "A", "shape only", learning.uniform_samples, learning.log2_uniform_samples),
    Entry("sharper Theorem 8", "ours", "ours", learning.sparse_samples, learning.log2_sparse_samples),
    Entry("Theorem 13", "A", "proved", hardness.junta_size),
    Entry("Theorem 13", "A", "conjectured", hardness.junta_time, hardness.log2_junta_time),
    Entry("Theorem 14", "A", "shape only", hardness.parity_queries, hardness.log2_parity_queries),
    Entry("Section 4, parity", "A", "proved", hardness.lifted_parity_size),
    Entry("Section 4, rounding", "A", "proved", hardness.rounding_units),
    Entry("Lemma 18", "A", "proved", learning.samples_from_rademacher),
    Entry("Theorem 17", "A", "shape only", learning.general_samples),
    Entry("dense class", "A", "proved", rademacher.dense_complexity_bound),
    Entry("Theorem 19, (15)", "A", "shape only", rademacher.sparse_complexity_bound),
    Entry("(15) with constants", "ours", "ours", rademacher.sparse_complexity_bound_explicit),
    Entry("Conjecture 20", "A", "conjectured", rademacher.sparse_complexity_conjecture),
    Entry("Theorem 4.1, table", "B", "shape only", lipschitz.table_size, lipschitz.log2_table_size),
    Entry("Theorem 4.1, samples", "B", "shape only", lipschitz.table_samples),
    Entry("Theorem 4.1, time", "B", "shape only", lipschitz.forward_operations),
    Entry("Theorem 4.2", "B", "shape only", lipschitz.dense_width, lipschitz.log2_dense_width),
    Entry("Lemma B.1, diameter", "B", "proved", lipschitz.bucket_diameter),
    Entry("Lemma B.1, buckets", "B", "shape only", lipschitz.bucket_count),
    Entry("Lemma B.1, buckets", "ours", "ours", lipschitz.bucket_count_of_cuts),
    Entry("Theorem C.1", "B", "shape only", lipschitz.manifold_table_size, lipschitz.log2_manifold_table_size),
    Entry(
        "Theorem C.1, proof",
        "B",
        "shape only",
        lipschitz.manifold_table_size_proof,
        lipschitz.log2_manifold_table_size_proof,
    ),
    Entry("Theorem C.1, samples", "B", "shape only", lipschitz.manifold_samples),
    Entry("Lemma C.3", "B", "shape only", lipschitz.manifold_tables),
    Entry("Theorem D.1", "B", "shape only", lipschitz.analytic_width, lipschitz.log2_analytic_width),
    Entry("Theorem D.1, samples", "B", "shape only", lipschitz.analytic_samples),
)
"""In the order of the papers, our own beside what they sharpen."""
