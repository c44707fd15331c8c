"""Updates are all or nothing: under Ctrl-C at any line, under errors, and for other threads."""

import pickle
import pkgutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

import sparsact
from sparsact import DSMRegressor, LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV, LSHRegressor
from sparsact.learners.low_degree import compact_sums, distinct_points
from sparsact.transaction import lock_of, uninterrupted


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, as it does not where a shell began the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


SOURCE = str(Path(sparsact.__file__).parent)
SPREAD = 4  # places of an interrupt in each update

rng = np.random.default_rng(3)
BITS = rng.integers(0, 2, (70, 5))
REALS = rng.normal(size=(70, 3))
Y = rng.normal(size=70) + BITS[:, 0]
LABELS = np.where(Y > 0, "high", "low")

MODELS = {
    "rows": (LowDegreeRegressor(2, solver="kernel"), BITS, Y),
    "cells": (LowDegreeRegressor(2, solver="cells"), BITS, Y),
    "moments": (LowDegreeRegressor(1, solver="moments"), BITS, Y),
    "real": (LowDegreeRegressor(1), REALS, Y),
    "undecided": (LowDegreeRegressor(1), np.ones((70, 5), dtype=int), Y),
    "classes": (LowDegreeClassifier(1), BITS, LABELS),
    "folds": (LowDegreeRegressorCV((0, 1), (1.0,), cv=2), BITS, Y),
    "buckets": (LSHRegressor(2, 2, 1.0, random_state=0), REALS, Y),
    "ridge": (DSMRegressor(8, 4, random_state=0), REALS, Y),
    "trained": (DSMRegressor(8, 4, solver="rmsprop", epochs=2, random_state=0), REALS, Y),
}
OLD, NEW = slice(0, 40), slice(40, 70)


def begun(name):
    model, X, y = MODELS[name]
    model = deepcopy(model).partial_fit(X[OLD], y[OLD])
    if name == "buckets":
        model.table_.rows_at_once = 7  # tables are changed in several steps
    return model


def updates(name):
    """The updates that a model has, by name; each takes the model."""
    make, X, y = MODELS[name]
    found = {
        "fit": lambda model: model.fit(X[NEW], y[NEW]),
        "partial_fit": lambda model: model.partial_fit(X[NEW], y[NEW]),
    }
    if hasattr(make, "remove") and name != "folds":
        found["remove"] = lambda model: model.remove(X[:9], y[:9])
    if name != "trained":
        other = begun(name).blank() if hasattr(make, "blank") else deepcopy(make)
        other.partial_fit(X[NEW], y[NEW])
        found["merge"] = lambda model: model.merge(deepcopy(other))
    return found


CASES = [(name, update, False) for name in MODELS for update in updates(name)]
CASES += [("buckets", update, True) for update in updates("buckets")]


def answers(model, name):
    """What a model says of its rows, after checking that its totals agree with its sums."""
    agree(model)
    X = MODELS[name][1][::3]
    values = model.predict(X) if name != "classes" else model.decision_function(X)
    n_rows = model.n_rows_ if hasattr(model, "n_rows_") else model.n_samples_seen_
    return n_rows, np.asarray(values).tolist()


def agree(model):
    if "table_" in vars(model):
        table, p = model.table_, model.table_.layout.n_local
        assert table.counts.sum() == table.rows.copies.sum() * table.layout.n_tables
        assert table.totals[0] * table.layout.n_tables == pytest.approx(table.sums[:, p].sum())
        assert (table.index.find(table.index.keys) == np.arange(len(table.index))).all()
        assert not table._counts[len(table.index) :].any()
        assert not table._sums[len(table.index) :].any()
        assert table._pending is None
    for statistic in model.accumulator_.statistics if "accumulator_" in vars(model) else []:
        if isinstance(statistic, compact_sums.Cells | distinct_points.DistinctPoints):
            statistic.flush()
            assert sum(statistic.weights.to_fractions()) == statistic.totals.weight.to_fractions()[0]
            sums = np.reshape(statistic.sums.to_fractions(), statistic.sums.shape).sum(axis=1)
            assert sums.tolist() == statistic.totals.sums.to_fractions()
        elif isinstance(statistic, compact_sums.Moments):
            statistic.flush()
            assert statistic.weights.to_fractions()[0] == statistic.totals.weight.to_fractions()[0]
    if "statistic_" in vars(model):
        assert model.n_rows_ == model.statistic_.n_rows


def traced(call, place=None):
    """Run a call, and press Ctrl-C at the line of that number inside the package; how many lines ran."""
    n_lines = 0

    def look(frame, event, argument):
        nonlocal n_lines
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            n_lines += 1
            if n_lines == place:
                signal.raise_signal(signal.SIGINT)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        call()
    finally:
        sys.settrace(before)
    return n_lines


@pytest.mark.parametrize(("name", "update", "asked"), CASES)
def test_an_interrupt_leaves_all_or_nothing(name, update, asked):
    """Asked: the model has answered before the update, so that its table stays with the predictor."""
    change, start = updates(name)[update], begun(name)
    if asked:
        start.predict(MODELS[name][1][:2])
    changed = deepcopy(start)
    n_lines = traced(lambda: change(changed))
    assert n_lines > SPREAD
    states = [answers(deepcopy(start), name), answers(changed, name)]
    assert states[0] != states[1]
    for place in np.unique(np.linspace(1, n_lines, SPREAD).astype(int)).tolist():
        model = deepcopy(start)
        try:
            traced(lambda model=model: change(model), place)
        except KeyboardInterrupt:
            pass
        else:
            pytest.fail(f"the interrupt at line {place} was lost")
        found = answers(model, name)
        assert found in states, place
    if found == states[0]:  # and nothing is left that would get in the way of the next attempt
        assert answers(change(model), name) == states[1]


@pytest.mark.parametrize("name", ["cells", "moments", "rows"])
def test_an_interrupt_while_the_solution_is_found(name):
    start, X = begun(name), MODELS[name][1]
    start.partial_fit(X[NEW], MODELS[name][2][NEW])
    n_lines = traced(lambda: deepcopy(start).predict(X))
    due = answers(deepcopy(start), name)
    for place in np.linspace(1, n_lines, 8).astype(int).tolist():
        model = deepcopy(start)
        with pytest.raises(KeyboardInterrupt):
            traced(lambda model=model: model.predict(X), place)
        assert answers(model, name) == due


@pytest.mark.parametrize("name", ["buckets", "cells", "ridge", "folds"])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_half_way_leaves_nothing(name, failing, monkeypatch):
    """The memory that runs out in the call of that number of what each update needs several times."""
    places = {
        "buckets": "sparsact.learners.lsh.bucket_table.bucket_statistics.accumulate",
        "cells": "sparsact.statistics.exact_sum.ExactSum.merge",
        "ridge": "sparsact.learners.dsm.regressor.add_rows",
        "folds": "sparsact.statistics.exact_sum.ExactSum.add",
    }
    model, (_, X, y) = begun(name), MODELS[name]
    before, calls = answers(deepcopy(model), name), []
    owner, _, function = places[name].rpartition(".")

    def short(original):
        def run(*args, **kwargs):
            if len(calls) == (failing if name != "ridge" else 0):
                raise MemoryError
            calls.append(function)
            return original(*args, **kwargs)

        return run

    with monkeypatch.context() as patched:
        thing = pkgutil.resolve_name(owner)
        patched.setattr(thing, function, short(getattr(thing, function)))
        with pytest.raises(MemoryError):
            model.partial_fit(X[NEW], y[NEW])
    assert answers(model, name) == before


def test_a_failed_fit_leaves_the_earlier_model():
    model = LowDegreeRegressor(1).fit(BITS, Y)
    before = model.predict(BITS)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(BITS, np.full(70, np.nan))
    np.testing.assert_array_equal(model.predict(BITS), before)


@pytest.mark.parametrize("name", ["cells", "moments", "rows", "buckets", "ridge"])
def test_threads_add_up(name):
    _, X, y = MODELS[name]
    model, parts = begun(name), [np.arange(40 + i, 70, 8) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: model.partial_fit(X[part], y[part]), parts))
    due = begun(name).partial_fit(X[NEW], y[NEW])
    agree(model)
    if name in ("buckets", "ridge"):  # sums of floats, in another order
        np.testing.assert_allclose(model.predict(X), due.predict(X), rtol=1e-8, atol=1e-10)
    else:
        np.testing.assert_array_equal(model.predict(X), due.predict(X))


@pytest.mark.parametrize("name", ["cells", "buckets", "ridge"])
def test_a_prediction_meanwhile_sees_before_or_after(name):
    """The target of batch i is i everywhere: the weighted mean tells which batches were seen, at every point alike."""
    make, X, _ = MODELS[name]
    model = deepcopy(make).fit(X, np.zeros(70))
    due = [model.predict(X)]
    single = deepcopy(model)
    batches = [np.full(70, float(i)) for i in range(1, 9)]
    due += [single.partial_fit(X, batch).predict(X) for batch in batches]
    seen, ready, over = [], Event(), Event()

    def ask():
        while not over.is_set():
            seen.append(model.predict(X))
            ready.set()

    thread = Thread(target=ask)
    thread.start()
    ready.wait()
    for batch in batches:
        model.partial_fit(X, batch)
    over.set()
    thread.join()
    for values in seen:
        assert any(np.array_equal(values, each) for each in due)


def test_two_models_merged_into_each_other_at_once():
    one, other = begun("cells"), begun("cells")
    threads = [Thread(target=one.merge, args=(other,)), Thread(target=other.merge, args=(one,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted([one.n_samples_seen_, other.n_samples_seen_]) == [80, 120]


def test_a_copy_has_its_own_lock():
    model = begun("cells")
    twins = [deepcopy(model), pickle.loads(pickle.dumps(model))]
    with lock_of(model), ThreadPoolExecutor(1) as pool:
        for twin in twins:
            pool.submit(twin.partial_fit, BITS[NEW], Y[NEW]).result(20)


def test_an_interrupt_is_deferred_to_the_end_of_a_block():
    done = []

    def block():
        with uninterrupted(), uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("block")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
