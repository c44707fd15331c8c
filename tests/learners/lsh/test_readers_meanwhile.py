"""Readers in other threads while rows come and go: each answer is that of one state, and states come in order."""

import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Timer

import numpy as np
import pytest

from sparsact import LSHRegressor
from sparsact.learners.lsh import updates as lsh_updates

FIXED = {"n_tables": 5, "degree": 1, "bucket_width": 0.6, "alpha": 0.1, "directions": "principal", "random_state": 3}
rng = np.random.default_rng(11)
X = rng.uniform(-1, 1, (1300, 3))
Y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
QUERIES = rng.uniform(-1, 1, (90, 3))
PART = slice(1000, 1040)


@pytest.fixture(autouse=True)
def frequent_switches():
    """The interpreter changes threads between almost any two steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def fitted(**options):
    model = LSHRegressor(**FIXED | {"n_stages": 1} | options).fit(X[:1000], Y[:1000])
    model.predict(QUERIES)
    return model


def updates(model):
    """Each kind of update; targets far off, so that every state answers differently."""
    part = model.blank().partial_fit(X[1040:1060], 9 * Y[1040:1060])
    steps = []
    for turn in range(4):
        rows, one = slice(PART.start + 10 * turn, PART.start + 10 * turn + 10), slice(1100 + turn, 1101 + turn)
        steps += [
            lambda model, rows=rows: model.partial_fit(X[rows], 20 * Y[rows]),
            lambda model, one=one: model.partial_fit(X[one], 3 + Y[one]),
            lambda model, turn=turn: model.remove(X[90 * turn : 90 * turn + 90], Y[90 * turn : 90 * turn + 90]),
            lambda model, one=one: model.remove(X[one], 3 + Y[one]),
            lambda model: model.merge(part),
            lambda model, rows=rows: model.remove(X[rows], 20 * Y[rows]),
        ]
    return steps


READERS = {
    "predict": lambda model: model.predict(QUERIES),
    "predict of one row": lambda model: model.predict(QUERIES[:1]),
    "predictor of now": lambda model: model.predictor()(QUERIES),
    "predict_interval": lambda model: model.predict_interval(QUERIES),
    "a deep copy": lambda model: deepcopy(model).predict(QUERIES),
}


@pytest.mark.parametrize("options", [{}, {"n_stages": 2, "degree": 2}], ids=["one stage", "two stages"])
@pytest.mark.parametrize("reader", READERS)
def test_every_answer_is_that_of_a_state_and_states_come_in_order(options, reader):
    """States come from a model that nobody reads meanwhile; a reader never sees an earlier one again."""
    model, ask = fitted(**options), READERS[reader]
    alone, steps = deepcopy(model), updates(model)
    due = [ask(alone).tobytes()]
    for step in steps:
        step(alone)
        due.append(ask(alone).tobytes())
    held, snapshot, done, began = model.predictor(), model.predict(QUERIES), [], []

    def read():
        seen = []
        while not done or not seen:
            seen.append(ask(model).tobytes())
            began.append(None)
            assert np.array_equal(held(QUERIES), snapshot)
        return seen

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(read) for _ in range(3)]
        while len(began) < 3:
            pass
        for step in steps:
            step(model)
        done.append(True)
        for answers in asked:
            place = 0
            for answer in answers.result():
                assert answer in due, "an answer is that of no state"
                place = due.index(answer, place)  # a ValueError: an earlier state came back
    assert ask(model).tobytes() == due[-1]


@pytest.mark.parametrize("waits", [True, False])
def test_an_update_waits_for_a_reader_as_long_as_a_copy_would_take(waits, monkeypatch):
    """Then it copies: sums that nobody reads any more are changed in place."""
    model = fitted()
    sums, held = model.table_._sums, [model._predictor]
    monkeypatch.setattr(lsh_updates, "SECONDS_A_BYTE", 1.0 if waits else 0.0)
    if waits:
        Timer(0.01, held.clear).start()
    model.partial_fit(X[:3], Y[:3])
    assert (model.table_._sums is sums) == waits == (not held)
