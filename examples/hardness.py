"""Hard for statistics, easy for algebra: parity, juntas and learning with rounding, each with what it cost.

``python examples/hardness.py`` prints the tables of the documentation (about a minute; ``--quick`` a few seconds).
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from sparsact.hardness import (
    LearningWithRounding,
    consistent_secrets,
    junta_samples,
    learn_junta,
    parity_contest,
    secret_modulo,
    statistical_queries_needed,
)
from sparsact.hypercube import bits_to_signs


def contest(m: int, size: int, rng: np.random.Generator) -> Table:
    """Learners of a hidden parity."""
    subset = rng.choice(m, size=size, replace=False)
    bound = statistical_queries_needed(m, 0.1)
    grid = Table(title=f"parity of {size} of {m} bits; statistical queries needed at tolerance 0.1: {bound:.3g}")
    for heading in ("access", "inputs", "learner", "queries", "examples", "error"):
        grid.add_column(heading)
    for row in parity_contest(m, subset, rng=rng):
        error = "over its ledger" if row.error is None else f"{row.error:.3f}"
        grid.add_row(row.access, row.inputs, row.learner, f"{row.queries:,}", f"{row.examples:,}", error)
    return grid


def juntas(cases: list[tuple[int, int]], rng: np.random.Generator) -> Table:
    """Hidden parities of p variables, found by brute force and by restrictions."""
    grid = Table(title="juntas: a hidden parity of p among n variables")
    for heading in ("n", "p", "examples", "method", "correlations", "unknowns", "seconds"):
        grid.add_column(heading, justify="right")
    for n, p in cases:
        X = bits_to_signs(rng.integers(2, size=(junta_samples(n, p), n), dtype=np.int8))
        hidden = sorted(rng.choice(n, size=p, replace=False).tolist())
        y = X[:, hidden].prod(axis=1)
        for method in ("brute force", "restrictions"):
            start = perf_counter()
            found = learn_junta(X, y, p, method=method)
            seconds = perf_counter() - start
            if list(found.variables) != hidden:
                raise SystemExit(f"{method} found {found.variables}, not {hidden}")
            work = found.work
            grid.add_row(
                f"{n}", f"{p}", f"{len(X):,}", method, f"{work.correlations:,}", f"{work.unknowns:,}", f"{seconds:.3f}"
            )
    return grid


def rounding(rng: np.random.Generator) -> Table:
    """Learning with rounding on a tiny instance, and its printed form, which is linear when p divides q."""
    grid = Table(title="learning with rounding, m = 3: secrets that are left after some examples")
    for heading in ("rule", "p", "q", "examples", "secrets left", "solved by"):
        grid.add_column(heading, justify="right")
    for rule, p, q in (("round", 3, 7), ("modulo", 3, 9)):
        secret = rng.integers(q, size=3)
        problem = LearningWithRounding(secret, p, q, rule=rule)
        Y, labels = problem.residues(12, rng=rng)
        left = consistent_secrets(Y, labels, p, q, rule=rule)
        grid.add_row(rule, f"{p}", f"{q}", "12", f"{len(left)} of {q**3}", "trying all secrets")
        if rule == "modulo":
            found = secret_modulo(Y, labels, p, q).values
            if not np.array_equal(found, secret % p):
                raise SystemExit(f"elimination found {found}, not {secret % p}")
            grid.add_row(rule, f"{p}", f"{q}", "12", f"1 of {p**3}, modulo {p}", "elimination modulo p")
    return grid


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    rng, console = np.random.default_rng(0), Console(width=110)
    for m, size in [(10, 5)] if quick else [(16, 8), (40, 20)]:
        console.print(contest(m, size, rng))
    console.print(juntas([(30, 3)] if quick else [(50, 4), (100, 4), (50, 5), (40, 6)], rng))
    console.print(rounding(rng))


if __name__ == "__main__":
    main()
