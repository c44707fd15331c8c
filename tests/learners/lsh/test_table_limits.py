"""Tables that forget rows, and tables that run out of numbers or of memory."""

import numpy as np
import pytest
from hashed_rows import model, rows, same, state

import sparsact
from sparsact import memory
from sparsact.kernels.bucket_index import MOST_KEYS, BucketIndex

X, Y = rows()
QUERIES = rows(m=37, seed=4)[0]


def keys_of(numbers):
    return np.array(numbers, dtype=np.uint64)


def test_a_table_that_forgets_rows_is_the_same_but_for_removal(tmp_path):
    whole = model().fit(X, Y)
    other = whole.blank(remember_rows=False).partial_fit(X, Y)
    assert same(state(whole)[:4], state(other)[:4])
    np.testing.assert_array_equal(other.predict(QUERIES), whole.predict(QUERIES))
    assert len(whole.table_.rows) == len(X)
    assert len(other.table_.rows) == 0
    other.save(tmp_path / "forgetful")
    for forgetful in (other, sparsact.load(tmp_path / "forgetful")):
        with pytest.raises(ValueError, match=r"remembers no rows to remove: .*blank\(remember_rows=False\)"):
            forgetful.remove(X[:1], Y[:1])
        assert forgetful.n_samples_seen_ == 211


@pytest.mark.parametrize("forgetful", [(True, False), (False, True), (True, True)])
def test_a_sum_with_one_that_forgets_forgets(forgetful):
    whole = model().fit(X, Y)
    parts = [whole.blank(remember_rows=not forgets) for forgets in forgetful]
    parts[0].partial_fit(X[:90], Y[:90])
    parts[1].partial_fit(X[90:], Y[90:])
    both = parts[0].merge(parts[1])
    np.testing.assert_allclose(both.predict(QUERIES), whole.predict(QUERIES), rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="remembers no rows"):
        both.remove(X[:90], Y[:90])


def test_an_index_never_gives_a_number_that_it_has_not(kernels_in_use):
    assert BucketIndex().most == MOST_KEYS == np.iinfo(np.int32).max + 1
    index = BucketIndex(keys_of([5, 9]), most=4)
    np.testing.assert_array_equal(index.insert(keys_of([9, 7, 7, 5, 7])), [1, 2, 2, 0, 2])
    before = index.keys.copy()
    with pytest.raises(ValueError, match=r"3 keys and 2 new ones are more than 32 bits can number, 4"):
        index.insert(keys_of([8, 5, 6, 8]))
    np.testing.assert_array_equal(index.keys, before)
    np.testing.assert_array_equal(index.insert(keys_of([8, 5, 8])), [3, 0, 3])


def test_more_buckets_than_numbers_are_refused_before_anything_is_taken_in():
    learner = model(degree=1).fit(X[:100], Y[:100])
    other = learner.blank().partial_fit(X[100:], Y[100:])
    before = state(learner)
    learner.table_.index.most = len(learner.table_.index) + 3
    for take in (lambda: learner.partial_fit(X[100:], Y[100:]), lambda: learner.merge(other)):
        with pytest.raises(ValueError, match=r"buckets, more than 32 bits can number.*raise `bucket_width`"):
            take()
        assert same(state(learner), before)
    learner.partial_fit(X[:100], Y[:100])  # into buckets that are there
    assert learner.n_samples_seen_ == 200


def test_buckets_that_no_memory_is_left_for_are_refused_before_anything_is_taken_in(monkeypatch):
    learner = model(degree=1).fit(X[:100], Y[:100])
    other = learner.blank().partial_fit(X[100:], Y[100:])
    before = state(learner)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    for take in (lambda: learner.partial_fit(X[100:], Y[100:]), lambda: learner.merge(other)):
        with pytest.raises(MemoryError, match=r"buckets, which need [\d,]+ bytes more than there is room for; raise"):
            take()
        assert same(state(learner), before)
    learner.partial_fit(X[:100], Y[:100])
    monkeypatch.undo()
    assert learner.merge(other).n_samples_seen_ == 311
