"""Tables of many variants: all rows of sparse columns are learned from, and what is too slow for them only looks."""

import re

import numpy as np
import pyarrow as pa
import pytest

import sparsact as sa
from sparsact.datasets import open_table
from sparsact.datasets.columns import Real
from sparsact.datasets.unseen_rows import DesignSums
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.latent import DENSE, products_of_row
from sparsact.fit.candidates.letters import LettersCandidate
from sparsact.fit.candidates.lsh import LSHCandidate
from sparsact.fit.fold_sums import FoldSums
from sparsact.learners import LowDegreeRegressorCV
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch

WILD, LETTERS = "ACDEFGHIKLMNPQRSTVWYACDEF", list("ACDEFG")


def variants(m):
    """Up to two changes of a wild type of 25 sites, whose effects add up behind a sigmoid."""
    rng = np.random.default_rng(1)
    effects = {(i, letter): rng.normal() for i in range(len(WILD)) for letter in LETTERS}
    texts, y = [], []
    for _ in range(m):
        sites = rng.choice(len(WILD), 2, replace=False)
        changed = {int(i): str(rng.choice(LETTERS)) for i in sites}
        texts.append("".join(changed.get(i, letter) for i, letter in enumerate(WILD)))
        latent = sum(effects[i, letter] for i, letter in changed.items() if WILD[i] != letter)
        y.append(1 / (1 + np.exp(-2 * latent)) + 0.03 * rng.normal())
    return pa.table({"x": texts, "y": y})


def test_packed_rows_match_the_table_and_contain_the_smaller_sample(tmp_path):
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (203, 13)), rng.normal(size=203)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    table = open_table(tmp_path / "t.npz", "y", batch_rows=31)
    search = LowDegreeRegressorCV(degrees=(1,), cv=4, random_state=1)
    sums = FoldSums(Real("y"), search, RowSample(50, 4, 1), RowSample(150, 4, 1), DesignSums(table.encoding))
    other, first = sums.empty(), 0
    for number, batch in enumerate(table.batches()):
        (sums, other)[number % 2].add(Batch(*batch, first_row=first))
        first += len(batch[0])
    sums.merge(other)
    again = sums.empty()
    again.restore(*sums.state())
    for each in (sums, again):
        few, of_few, folds_of_few = each.bits_of_many(50)
        many, of_many, folds = each.bits_of_many(150)
        assert (len(few), len(many)) == (50, 150)
        assert each.drawn(50) is each.sample
        assert each.drawn(150) is each.packed
        place = {value: row for row, value in enumerate(y.tolist())}
        for bits, values in ((few, of_few), (many, of_many)):
            np.testing.assert_array_equal(bits, X[[place[value] for value in values.tolist()]] == 1)
        shared = np.isin(of_many, of_few)
        np.testing.assert_array_equal(of_many[shared], of_few)
        np.testing.assert_array_equal(folds[shared], folds_of_few)


def test_products_of_a_row_are_of_columns_that_differ_from_the_most_frequent_row():
    rows = np.zeros((100, 64), dtype=np.uint8)
    rows[:, ::2] = 1
    rows[np.arange(100), np.arange(100) % 64] ^= 1
    rows[np.arange(100), (np.arange(100) + 1) % 64] ^= 1
    assert products_of_row(rows) == pytest.approx(DENSE * 2.0**2)
    assert products_of_row(np.random.default_rng(0).integers(0, 2, (100, 64))) == 64**2


@pytest.fixture
def small_samples(monkeypatch):
    """A sample of 300 rows; letters look at 60 of them."""
    monkeypatch.setitem(candidates(), "lsh", LSHCandidate(most_rows=300))
    monkeypatch.setitem(candidates(), "letters", LettersCandidate(rows_of_look=60))


@pytest.mark.grid
@pytest.mark.usefixtures("few_rivals", "small_samples")
def test_a_measurement_model_learns_from_all_rows_and_letters_take_a_look():
    """One in 300 rows would leave half of the variance: 126 effects; that of 2,000 leaves the noise, a tenth."""
    table, said = variants(2_300), []
    test = table.slice(2_000)
    result = sa.fit_table(table.slice(0, 2_000), "y", test=test, held_out_rows=True, progress=said.append)
    assert result.choices.kind == "latent"
    assert re.search(r"a model of letters of 60 rows had R² -?\d\.\d+, another of more rows \d", result.choices.reason)
    stages = [now.stage for now in said]
    assert stages.index("fitting measurement models") < stages.index("looking at letters")
    assert "fitting letters" not in stages
    assert result.test.targets[0].r2.value > 0.85
    (target,) = result.targets
    assert abs(target.r2.mean - result.test.targets[0].r2.value) < 0.05
    assert np.corrcoef(target.predicted, target.actual)[0, 1] ** 2 > 0.85  # rows and predictions belong together
    assert target.terms[0].low < target.terms[0].effect < target.terms[0].high
    (note,) = [now.note for now in said if now.note]
    assert [now.note for now in said].index(note) < stages.index("choosing")
