"""Slopes against exponents of theory, on power laws."""

import numpy as np
import pytest
from reproduced import LINE, made_up

from sparsact_papers.common.rates import SIDE, judge_rate, window
from sparsact_papers.experiments import MissingRowsError, Outcome, Rows


def curves(k, power, coarse=1.0):
    """Errors buckets^power of three seeds, with a floor on the sizes of tables too coarse for the window."""
    n = np.array([SIDE**k / 9, SIDE**k / 3, SIDE**k, 3.0 * SIDE**k, 27.0 * SIDE**k])
    errors = np.where(n < SIDE**k, coarse, n**power)
    return Rows(
        made_up(LINE, {"seed": seed}, {"buckets": n[part].tolist(), "sup_errors": (errors * 1.1**seed)[part].tolist()})
        for seed in range(3)
        for part in (slice(3, None), slice(0, 3))  # rows that continue each other, the finer first
    )


def test_the_window_is_of_tables_with_a_side_of_eight():
    buckets, errors = window(curves(2, -0.5).where(seed=0), 2)
    np.testing.assert_allclose(buckets, [64, 192, 1728])
    np.testing.assert_allclose(errors, buckets**-0.5)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_coarse_tables_do_not_count_and_one_more_dimension_is_seen(k):
    assert judge_rate(curves(k, -1 / k, coarse=1e-3), k, "").outcome is Outcome.HOLDS
    assert judge_rate(curves(k, -1 / (k + 1), coarse=1e3), k, "").outcome is Outcome.DOES_NOT_HOLD


def test_two_tables_are_no_curve():
    with pytest.raises(MissingRowsError):
        judge_rate(Rows(curves(2, -0.5)[:1]), 2, "k = 2")
