"""All bounds in one list: what each one states, how far it is proved, and what its parameters mean.

The command and the documentation print this list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, getdoc, signature
from re import MULTILINE, search
from typing import Any, Literal

from sparsact.bounds import buckets, hardness, learning, lipschitz, rademacher, sensitivity

PARAMETERS: dict[str, str] = {
    "n": "Coordinates of an input.",
    "s": "Units of the network.",
    "k": "Most units active at any input, from 1 to s.",
    "W": "Largest \\|u\\| times largest norm of a unit's weights (Definition 2).",
    "B": "Largest \\|u\\| times largest \\|b\\| (Definition 2).",
    "R": "Largest norm of an input.",
    "C": "Largest \\|h(x)\\| of the class.",
    "m": "Rows.",
    "epsilon": "Squared error; of the theorems on Lipschitz functions, the uniform error.",
    "delta": "Probability of failure.",
    "rho": "Correlation of the noise: each sign is flipped with probability (1 - rho) / 2.",
    "degree": "Degree above which weight counts.",
    "probability": "Share of the points at which the halfspace is 1.",
    "second_moment": "Mean square of the number of active units under uniform inputs.",
    "average_sensitivity": "AS of the function.",
    "noise_sensitivity": "NS of the function at ``rho``.",
    "complexity": "Rademacher complexity for a number of rows.",
    "c": "Constant that the paper leaves open.",
    "c_degree": "Constant of the degree, left open.",
    "C1": "Constant in the base, left open.",
    "power": "Factor of the exponent, left open.",
    "p": "Variables of the junta.",
    "length": "Bits of the parity, or entries of the secret.",
    "tau": "Tolerance of a statistical query.",
    "p_modulus": "Values of a label.",
    "q_modulus": "Modulus of the inner product.",
    "ambient": "Dimension d of the space.",
    "intrinsic": "Dimension k of the data.",
    "L": "Lipschitz constant.",
    "bits": "Bits of a parameter of the dense model.",
    "bucket_width": "Step of the inner product at which a direction is cut.",
    "n_directions": "Directions K of the hash.",
    "cuts": "Cuts along one direction.",
    "radius": "Of the ball.",
    "confidence": "Probability with which the bound holds.",
}
AFTER = r"^(?:(?:Raises|Notes|References|Examples)\n-+$|>>> )"  # what stands below parameters and value


def complete(function: Callable[..., Any], gives: str) -> None:
    """Put the sections that a docstring lacks into it, from :data:`PARAMETERS` and from what the bound gives."""
    text = getdoc(function)
    if text is None:  # python -OO
        return
    found = search(AFTER, text, MULTILINE)
    above, below = (text[: found.start()], text[found.start() :]) if found else (text, "")
    given = signature(function)
    if "Parameters\n---" not in text:
        rows = [f"{name} : {_kind(name, p.annotation)}\n    {PARAMETERS[name]}" for name, p in given.parameters.items()]
        above = "\n".join([above.rstrip(), "", "Parameters", "----------", *rows])
    if "Returns\n---" not in text:
        value = f"bound : {given.return_annotation}\n    {gives[0].upper()}{gives[1:]}."
        above = "\n".join([above.rstrip(), "", "Returns", "-------", value])
    if below.startswith(">>>"):
        below = f"Examples\n--------\n{below}"
    function.__doc__ = f"{above.rstrip()}\n\n{below}".rstrip()


def _kind(name: str, annotation: str) -> str:
    return "callable" if name == "complexity" else annotation


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
