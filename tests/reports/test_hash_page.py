"""The page of a model by hashing: names are escaped, numbers are those of the summary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsact.reports import Resources, Spread
from sparsact.reports.figures import bucket_load, column_shares, compared, error_cost
from sparsact.reports.figures.error_cost import whole
from sparsact.reports.hash_page import render
from sparsact.reports.hash_summary import HashedTarget, HashSummary, Layout, Trial

HOSTILE = "<script>alert('a$b$')</script>"


@pytest.fixture(scope="module")
def summary():
    rng = np.random.default_rng(0)
    actual = rng.normal(size=90)
    target = HashedTarget(
        "y",
        Spread((0.9, 0.8, 0.85)),
        (("linear", Spread((0.1, 0.2, 0.0))),),
        actual,
        actual + 0.1 * rng.normal(size=90),
    )
    return HashSummary(
        table="t.csv",
        task="regression",
        n_rows=90,
        feature_names=(HOSTILE, "b"),
        notes=(),
        reason="hash tables, as asked.",
        layout=Layout(16, 2, 0.5, 1, 0.01, "gradients", 90, 200),
        trials=(
            Trial("principal", 80, 12, 0.5),
            Trial("principal", 80, 12, 0.4),
            Trial("principal", 80, 40, 0.3),
            Trial("gradients", 90, 30, 0.2),
        ),
        targets=(target,),
        counts=np.array([1, 1, 2, 3, 4, 9]),
        miss_rate=0.1,
        column_shares=((HOSTILE, 0.25), ("b", 0.75)),
        coverage=0.92,
        resources=Resources((("reading", 0.5), ("filling", 1.0)), 10**8),
        versions=(("sparsact", "0"),),
        command="sparsact fit t.csv",
    )


def test_the_page_holds_the_facts_and_escapes_names(summary):
    page = render(summary)
    assert "<script>" not in page
    assert "held-out R² 0.850 ± 0.050 (linear 0.100)" in page
    for fact in ("10.00%", "hold 92.0% of held-out rows", "hash tables, as asked.", "the first 90 rows"):
        assert fact in page


def test_a_page_of_nothing_learned_says_so(summary):
    nothing = replace(summary.targets[0], r2=Spread((-0.1, 0.1, 0.0)))
    page = render(replace(summary, targets=(nothing,), trials=()))
    assert "do not predict rows that they have not seen" in page
    assert "Error against cost" not in page


def test_loads_in_classes_that_double(summary):
    frame = bucket_load.frame(summary.counts)
    assert frame["least rows"] == [1, 2, 4, 8]
    assert frame["most rows"] == [1, 3, 7, 15]
    assert frame["buckets"] == [2, 2, 1, 1]
    np.testing.assert_allclose(frame["share of rows"], [2 / 20, 5 / 20, 4 / 20, 9 / 20])


def test_the_best_penalty_of_each_width(summary):
    frame = error_cost.frame(summary)
    assert frame["directions"] == ["gradients", "principal", "principal"]
    assert frame["buckets"] == [30, 12, 40]
    assert frame["error"] == [0.2, 0.4, 0.3]
    np.testing.assert_allclose(frame["megabytes"], [0.006, 0.0024, 0.008])


def test_columns_and_models_in_order(summary):
    assert column_shares.frame(summary)["column"] == ["b", HOSTILE]
    frame = compared.frame(summary.targets[0])
    assert frame["model"] == ["hash tables", "linear", "mean"]
    assert frame["fold 2"] == [0.8, 0.2, 0.0]


def test_ticks_of_the_logarithmic_axis():
    assert [whole(value) for value in (1000, 2000, 3000, 50_000)] == ["1,000", "2,000", "", "50,000"]
