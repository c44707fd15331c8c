"""Faults of deletion that others had (docs/deletion_faults.toml), where no other test shows them."""

import numpy as np
import psutil
import pytest
from hashed_rows import same, state

import sparsact
from sparsact import LSHRegressor

FIXED = {"n_tables": 5, "degree": 1, "bucket_width": 0.6, "alpha": 0.1, "directions": "principal", "random_state": 3}
WINDOW = 400


def drawn(m, *, drift=0.0, seed=2):
    """Rows about a place that moves by ``drift`` a row, and their targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3)) + drift * np.arange(m)[:, None]
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=m)


X, Y = drawn(4600)
QUERIES = drawn(150, seed=9)[0]


def tidy(model):
    """The state without buckets that removals have emptied."""
    assert model.bucket_counts_.min(initial=1) > 0
    return state(model)


def fitted(m=1000, **options):
    return LSHRegressor(**FIXED | {"n_stages": 1} | options).fit(X[:m], Y[:m])


@pytest.mark.parametrize("options", [{}, {"n_stages": 2, "degree": 2}], ids=["one stage", "two stages"])
def test_the_error_after_ten_windows_is_that_of_a_fit_to_the_last_one(options):
    """Every row of the first window has left; what is left is summed again in the same layout."""
    model = fitted(WINDOW, **options)
    for start in range(WINDOW, 11 * WINDOW, WINDOW):
        model.partial_fit(X[start : start + WINDOW], Y[start : start + WINDOW])
        model.remove(X[start - WINDOW : start], Y[start - WINDOW : start])
    last = slice(10 * WINDOW, 11 * WINDOW)
    anew = model.blank().partial_fit(X[last], Y[last])
    assert same(tidy(model), state(anew), 1e-9)
    errors = [each.predict(X[4400:]) - Y[4400:] for each in (model, anew)]
    np.testing.assert_allclose(*errors, rtol=1e-7, atol=1e-7)


def test_a_row_that_comes_again_counts_once_and_may_leave_again():
    model, without = fitted(), fitted().remove(X[:30], Y[:30])
    for _ in range(3):
        model.remove(X[:30], Y[:30])
        np.testing.assert_allclose(model.predict(QUERIES), without.predict(QUERIES), rtol=1e-8, atol=1e-10)
        with pytest.raises(ValueError, match=r"^row 0 was not added, .*; nothing was removed: .*\.$"):
            model.remove(X[:30], Y[:30])
        model.partial_fit(X[:30], Y[:30])
        np.testing.assert_allclose(model.predict(QUERIES), fitted().predict(QUERIES), rtol=1e-8, atol=1e-10)


def test_rows_leave_after_a_file_as_before_it_and_the_file_has_none_that_left(tmp_path):
    """Neither their targets nor their keys: a file after a removal is that of a model that never had the rows."""
    model, never = fitted(), fitted().blank().partial_fit(X[:600], Y[:600])
    model.remove(X[600:1000], Y[600:1000]).save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    assert np.isin(again.table_.rows.keys, never.table_.rows.keys).all()
    assert np.isin(again.table_.rows.targets, Y[:600]).all()
    with pytest.raises(ValueError, match="row 0 was not added"):
        again.remove(X[600:601], Y[600:601])
    np.testing.assert_array_equal(again.predict(QUERIES), model.predict(QUERIES))
    for each in (again, model):
        each.remove(X[:200], Y[:200]).partial_fit(X[700:800], Y[700:800])
    np.testing.assert_array_equal(again.predict(QUERIES), model.predict(QUERIES))
    assert same(tidy(again), tidy(model))


def held_bytes(model):
    """Bytes of every array that updates may enlarge."""
    table = model.table_
    tables = [table, *([] if table.backup is None else [table.backup])]
    parts = [part for each in tables for part in (each._counts, each._sums, each.index._keys, each.index.slots)]
    return sum(part.nbytes for part in [*parts, table.rows.index._keys, table.rows.index.slots, table.rows.copies])


def slid(model, rows, targets, window, step):
    """Rows come and go in steps; the most bytes that were held."""
    most = 0
    for start in range(window, len(rows) - step + 1, step):
        model.partial_fit(rows[start : start + step], targets[start : start + step])
        model.remove(rows[start - window : start - window + step], targets[start - window : start - window + step])
        most = max(most, held_bytes(model))
    return most


@pytest.mark.parametrize("options", [{}, {"fallback": "nearest"}], ids=["coarse", "nearest"])
def test_memory_and_file_stay_within_what_the_window_needs(options, tmp_path):
    """100,000 updates by rows that move away, so that cells empty for good: no bucket or row is kept for nothing."""
    rows, targets = drawn(50_000 + 1000, drift=1e-4)
    model = LSHRegressor(**FIXED | {"n_stages": 1} | options).fit(rows[:1000], targets[:1000])
    half = len(rows) // 2
    early = slid(model, rows[:half], targets[:half], 1000, 500)
    late = slid(model, rows[half - 1000 :], targets[half - 1000 :], 1000, 500)
    assert late < 1.25 * early
    anew = model.blank().partial_fit(rows[-1000:], targets[-1000:])
    assert same(tidy(model), state(anew), 1e-7)
    assert late < 5 * held_bytes(anew)
    for name, each in (("model", model), ("anew", anew)):
        each.save(tmp_path / name)
    sizes = [(tmp_path / name).stat().st_size for name in ("model", "anew")]
    assert abs(sizes[0] - sizes[1]) < 0.001 * sizes[1]


@pytest.mark.grid
def test_the_process_does_not_grow_in_a_million_updates():
    """Resident memory after 500,000 updates and after a million more, in batches and row by row."""
    rows, targets = drawn(125_000, drift=1e-4)
    model, process, held = LSHRegressor(**FIXED, n_stages=1).fit(rows[:1000], targets[:1000]), psutil.Process(), []
    for _ in range(6):
        slid(model, rows, targets, 1000, 500)
        slid(model, rows[-1000:], targets[-1000:], 500, 1)
        for _ in range(2):
            model.remove(rows[-500:], targets[-500:])
        assert model.n_samples_seen_ == model.n_buckets_ == 0
        model.partial_fit(rows[:1000], targets[:1000]).predict(rows[:50])
        held.append(process.memory_info().rss)
    assert held[-1] < held[1] + 2e6
