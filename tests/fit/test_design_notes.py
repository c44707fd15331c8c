"""Notes about the design: values that never meet, and combinations that are not missing at random."""

import numpy as np
import pyarrow as pa
import pytest

import sparsact as sa
from sparsact.hypercube import points

NAMES = tuple("abcdefgh")


def notes(bits, **options):
    y = bits[:, 0] + 0.1 * np.random.default_rng(0).normal(size=len(bits))
    table = pa.table({name: bits[:, i] for i, name in enumerate(NAMES)} | {"y": y})
    found = sa.fit_table(table, "y", degree=1, **options).encoding.notes
    return [note for note in found if "missing at random" in note or "never occur" in note]


CUBE = (1 - points(8)) // 2


def test_rows_at_random_have_no_note():
    rng = np.random.default_rng(1)
    for m in (40, 100, 200, 256):
        assert notes(CUBE[rng.permutation(256)[:m]]) == []
    assert notes(CUBE[rng.integers(0, 256, 300)]) == []


def test_a_column_that_decides_is_named_with_its_shares():
    rng = np.random.default_rng(2)
    kept = CUBE[rng.random(256) < np.where(CUBE[:, 3] == 1, 0.2, 0.8)]
    zero, one = (np.mean(kept[:, 3] == value) * len(kept) / 128 for value in (0, 1))
    shares = f"of the combinations with d=0 {zero:.1%}, of the combinations with d=1 {one:.1%}"
    assert notes(kept) == [f"combinations are not missing at random: {shares} are in the table."]
    repeated = np.repeat(kept, 3, axis=0)  # replicates are one combination
    assert notes(repeated) == notes(kept)


def test_a_pair_that_decides_is_named():
    kept = CUBE[np.random.default_rng(3).random(256) < np.where(CUBE[:, 1] == CUBE[:, 6], 0.9, 0.2)]
    (note,) = notes(kept)
    assert "of the combinations with b=1 and g=1 both or neither" in note


def test_false_alarms_are_rare():
    """On 400 draws of half of the cube at most one in a hundred has a note; the statistic's variance is exact."""
    from sparsact.datasets.unseen_rows import _missing

    rng = np.random.default_rng(4)
    values = [("", "")] * 8
    alarms = sum(bool(_missing(CUBE[rng.permutation(256)[:120]].astype(bool), values)) for _ in range(400))
    assert alarms <= 4
    sums = [(1.0 - 2 * CUBE[rng.permutation(256)[:120], 0]).sum() for _ in range(4000)]
    assert np.var(sums) == pytest.approx(120 * 136 / 255, rel=0.08)


def test_values_that_never_meet_are_named():
    kept = CUBE[(CUBE[:, 0] & CUBE[:, 1]) == 0]
    found = notes(kept)
    assert found[0] == "values that never occur together: a=1 with b=1."
    rare = np.vstack([np.zeros((20, 8), int), np.eye(8, dtype=int)])
    assert notes(rare)[0].endswith("a=1 with e=1 and 24 more pairs.")


@pytest.mark.grid
def test_tables_of_more_bits_than_a_float_has_exponents_are_fitted():
    bits = np.random.default_rng(5).integers(0, 2, (30, 1101))
    table = pa.table({f"c{i}": bits[:, i] for i in range(1101)} | {"y": bits[:, 3] + 0.25})
    found = sa.fit_table(table, "y", model="low-degree", degree=1, alpha=1.0, explain=False)
    assert len(found.encoding.feature_names) == 1101
