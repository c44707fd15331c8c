"""Summaries with every part filled, for the tests of reports."""

from dataclasses import replace

import numpy as np

from sparsact.datasets import Encoding
from sparsact.datasets.columns import Bit, Classes, Real
from sparsact.fit.candidates.lsh_details import ColumnWeight, LayoutInfo, TriedLayout
from sparsact.fit.choices import Choices
from sparsact.fit.result import FitResult, Resources
from sparsact.fit.scores import CandidateModel, Confusion, CVCandidate, FoldScores, LowDegreeInfo
from sparsact.fit.target_result import TargetResult
from sparsact.fit.term import Term


def target(name="brightness", names=("a", "b", "c"), r2=(0.81, 0.84, 0.8, 0.83, 0.85), n_held_out=700):
    rng = np.random.default_rng(3)
    actual = rng.normal(size=n_held_out)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    terms = [Term((name,), 0.8 - 0.31 * i, 0.7 - 0.31 * i, 0.9 - 0.31 * i, n_bits=1) for i, name in enumerate(names)]
    terms += [
        Term(pair, 0.1 * (-1) ** i, 0.1 * (-1) ** i - 0.05, 0.1 * (-1) ** i + 0.05, n_bits=2)
        for i, pair in enumerate(pairs)
    ]
    return TargetResult(
        name=name,
        r2=FoldScores(r2),
        linear_r2=FoldScores((0.41, 0.39, 0.44, 0.4, 0.42)),
        variance=1.2,
        weights=(0.7, 0.25),
        terms=tuple(terms),
        influences=tuple((name, 0.6 / (i + 1)) for i, name in enumerate(names)),
        actual=actual,
        predicted=actual + 0.3 * rng.normal(size=n_held_out),
    )


def summary(targets=None, confusion=None, names=("a", "b", "c"), **changes):
    candidates = tuple(
        CVCandidate(d, a, FoldScores(tuple(0.4 + 0.2 * (d > 1) - 0.01 * a + 0.01 * f for f in range(5))))
        for d in (1, 2, 3)
        for a in (0.0, 1.0, 10.0)
    )
    targets = tuple(targets or [target(names=names)])
    reason = "8 cells hold every row, and 7 unknowns fit in memory."
    chosen = CandidateModel("degree 2", targets[0].r2, chosen=True)
    choices = {
        "reason": "every column is bits",
        "models": (chosen, CandidateModel("degree 1 (linear)", targets[0].linear_r2)),
        "candidates": candidates,
        "kind": "low-degree",
        "low_degree": LowDegreeInfo(2, 1.0, 6, "cells", reason),
    }
    fields = {
        "model": None,
        "table": "proteins.csv",
        "n_rows": 8192,
        "encoding": Encoding(
            tuple(Bit(name, ("0", "1")) for name in names),
            tuple(Real(one.name) for one in targets) if confusion is None else (Classes("kind", confusion.classes),),
            ("genotype: strings of 3 bits, expanded into as many columns.",),
        ),
        "task": "regression" if confusion is None else "classification",
        "domain": "cube",
        "choices": Choices(**(choices | {name: changes.pop(name) for name in choices if name in changes})),
        "targets": targets,
        "resources": Resources((("reading", 0.31), ("fitting", 1.4)), 210_000_000),
        "versions": (("sparsact", "0.1"), ("kernels", "native (avx2)")),
        "call": 'sa.fit_table("proteins.csv", "brightness")',
        "confusion": confusion,
    }
    return FitResult(**(fields | changes))


def classes(names=("cat", "dog", "eel")):
    counts = np.array([[50, 3, 1], [4, 61, 2], [0, 5, 40]])
    targets = [target(name) for name in names]
    return summary(targets, Confusion(tuple(names), counts))


def tables(names=("a", "b", "c")):
    """Hash tables of 8,192 rows in 2 tables: 16,384 places."""
    tried = [
        TriedLayout(kind, n_rows, width, alpha, 1, int(900 / width), int(200_000 / width), error + alpha / 100, chosen)
        for kind, n_rows, width, error, chosen in (
            ("gradients", 8192, 0.5, 0.41, False),
            ("gradients", 8192, 0.625, 0.4, True),
            ("gradients", 4096, 0.625, 0.45, False),
            ("principal", 4096, 0.5, 0.8, False),
        )
        for alpha in (0.01, 0.1)
    ]
    return LayoutInfo(
        directions="gradients",
        n_stages=1,
        n_tables=2,
        n_local=2,
        degree=1,
        bucket_width=0.625,
        alpha=0.01,
        n_buckets=1440,
        n_bytes=320_000,
        load=((1, 400), (5, 800), (35, 200), (124, 40), (126, 0)),
        miss_rate=0.024,
        trials=tuple(replace(trial, chosen=trial.chosen and trial.alpha == 0.01) for trial in tried),
        columns=tuple(ColumnWeight(name, 0.4 - 0.3 * i, 0.5 / 2**i / len(names)) for i, name in enumerate(names)),
        rows_laid_out=8192,
        missed_everywhere=0.001,
        coverage=((0.5, 0.53), (0.8, 0.81), (0.9, 0.91), (0.95, 0.94), (0.99, 0.98)),
    )


def hashed(confusion=None, names=("a", "b", "c")):
    """A summary of a fit that has taken hash tables."""
    part = [replace(target(names=names), weights=(), terms=(), influences=())]
    linear = CandidateModel("degree 1 (linear)", part[0].linear_r2, FoldScores((2.0, 2.1, 2.2, 2.0, 2.1)))
    won = CandidateModel("hash tables (LSH)", part[0].r2, FoldScores((1.0, 1.1, 1.2, 1.0, 1.1)), chosen=True)
    reason = "held-out R² 0.826 against 0.412 of degree 1 (linear), on the same 5 folds"
    choices = {"kind": "lsh", "low_degree": None, "models": (won, linear), "reason": reason}
    return summary(part, confusion, names, **choices, details=tables(names), domain="real")
