"""Streams that choose their layout again: when, what it equals, and what they refuse."""

import numpy as np
import pytest

import sparsact as sa
from sparsact.learners.lsh import adaptive

SETTINGS = {"n_tables": 8, "degree": 1, "n_stages": 1, "columns": "all", "alpha": 1e-4, "random_state": 3}
GIVEN = SETTINGS | {"n_hashes": 4, "bucket_width": 1.5, "directions": "principal"}  # of all columns: any rows give it
STEP, WINDOW = 300, 4


class FewRows(adaptive.Stream):
    recent = 256


class LSHRegressor(sa.LSHRegressor):
    """One whose streams compare layouts on few rows."""

    _no_rows = FewRows()
    _enough_for_layout = 300


def drawn(rng, column, m=STEP):
    X = rng.normal(size=(m, 4))
    return X, np.sin(2 * X[:, column]) + 0.05 * rng.normal(size=m)


def slide(model, adapt, columns):
    """Errors of each step of a window in which the target depends on ``columns[t]``, and the rows held at the end."""
    rng, held, errors = np.random.default_rng(11), [], []
    for column in columns:
        X, y = drawn(rng, column)
        if held:
            errors.append(float(np.sqrt(np.mean((model.predict(X) - y) ** 2))))
        model.partial_fit(X, y, adapt=adapt)
        held.append((X, y))
        if len(held) > WINDOW:
            model.remove(*held.pop(0))
    return errors, [np.concatenate(part) for part in zip(*held, strict=True)]


@pytest.mark.grid
def test_another_layout_is_taken_where_the_target_turns_to_another_column():
    turned = [0] * 6 + [3] * 9
    fixed, adapting = LSHRegressor(**SETTINGS), LSHRegressor(**SETTINGS)
    before, _ = slide(fixed, False, turned)
    after, (X, _) = slide(adapting, True, turned)
    assert (fixed.n_adaptations_, adapting.n_adaptations_ > 0) == (0, True)
    assert after[:5] == before[:5]
    assert np.mean(after[-3:]) < 0.5 * np.mean(before[-3:])
    assert adapting.n_samples_seen_ == len(X) == WINDOW * STEP


@pytest.mark.grid
def test_a_new_layout_matches_a_fit_to_the_rows_held():
    model, rng, held = LSHRegressor(**SETTINGS), np.random.default_rng(2), []
    while not model.n_adaptations_ and len(held) < 20:
        held.append(drawn(rng, 0 if len(held) < 3 else 3))
        model.partial_fit(*held[-1], adapt=True)
    X, y = (np.concatenate(part) for part in zip(*held, strict=True))
    queries = rng.normal(size=(53, 4))
    np.testing.assert_array_equal(model.predict(queries), LSHRegressor(**SETTINGS).fit(X, y).predict(queries))
    model.remove(X[:7], y[:7])
    np.testing.assert_allclose(
        model.predict(queries), LSHRegressor(**SETTINGS).fit(X, y).remove(X[:7], y[:7]).predict(queries)
    )


def test_a_given_layout_stays_and_predictions_match_a_plain_stream():
    plain, adapting = LSHRegressor(**GIVEN), LSHRegressor(**GIVEN)
    one, _ = slide(plain, False, [1] * 9)
    other, _ = slide(adapting, True, [1] * 9)
    assert one == other
    assert adapting.n_adaptations_ == 0


def test_comparisons_in_vain_become_rarer(monkeypatch):
    compared = []
    whole = adaptive.Stream.compared
    monkeypatch.setattr(adaptive.Stream, "compared", lambda stream: compared.append(stream.n_since) or whole(stream))
    slide(LSHRegressor(**GIVEN), True, [1] * 40)
    assert len(compared) >= 2
    assert compared == sorted(compared)
    assert compared[-1] >= 2 * compared[0]


def test_rows_that_came_without_adapt_are_refused(tmp_path):
    rng = np.random.default_rng(5)
    X, y = drawn(rng, 0)
    message = "adapt=True needs all rows of the model.*a file does not hold rows"
    for model in (LSHRegressor(**GIVEN).fit(X, y), LSHRegressor(**GIVEN).partial_fit(X, y)):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y, adapt=True)
    adapting = LSHRegressor(**GIVEN).partial_fit(X, y, adapt=True)
    adapting.save(tmp_path / "model.sparsact")
    with pytest.raises(ValueError, match=message):
        sa.load(tmp_path / "model.sparsact").partial_fit(X, y, adapt=True)
    with pytest.raises(ValueError, match=message):
        adapting.merge(adapting.blank().partial_fit(*drawn(rng, 0))).partial_fit(X, y, adapt=True)
    blank = adapting.blank().partial_fit(X[:9], y[:9], adapt=True)
    assert blank.n_samples_seen_ == 9


def test_rows_that_are_refused_leave_the_stream_as_it_was():
    X, y = drawn(np.random.default_rng(6), 0)
    model = LSHRegressor(**GIVEN).partial_fit(X, y, adapt=True)
    before = model._stream
    with pytest.raises(ValueError, match="row 2 lies too far"):
        model.partial_fit(np.vstack([X[:2], np.full((1, 4), 1e200)]), y[:3], adapt=True)
    with pytest.raises(ValueError, match="was not added"):
        model.remove(X + 1, y)
    assert model._stream is before
