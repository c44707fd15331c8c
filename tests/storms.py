"""Threads that ask a model, save it and pickle it while others change it; learners/test_storms.py runs this.

``storms.py SECONDS NAME ...`` prints a line of JSON for each learner: what went wrong, and how many answers were seen.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

import sparsact as sa

SWITCH = 1e-5  # seconds: the interpreter changes threads between almost any two steps
N_UPDATES = 12
rng = np.random.default_rng(0)
REALS, BITS = rng.normal(size=(230, 3)), rng.integers(0, 2, (60, 6))
WORDS = rng.choice(list("ACD"), (60, 4))
Y, SHORT = np.sin(2 * REALS[:, 0]) + REALS[:, 1], BITS[:, 0] - BITS[:, 1] * BITS[:, 2] + 0.1 * rng.normal(size=60)
TABLES = {"n_tables": 5, "degree": 1, "bucket_width": 0.6, "alpha": 0.1, "directions": "principal", "random_state": 0}


def labels(y: Any) -> Any:
    """Two classes."""
    return np.where(y > 0, "high", "low")


# A blank model, rows and targets. If it learns in parts, every update adds the same rows.
LEARNERS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "LSHRegressor": lambda: (sa.LSHRegressor(**TABLES, n_stages=1, columns="all"), REALS, Y),
    "LSHRegressor(stages)": lambda: (sa.LSHRegressor(**TABLES, n_stages=2), REALS, Y),
    "LSHClassifier": lambda: (sa.LSHClassifier(**TABLES), REALS, labels(Y)),
    "LowDegreeRegressor": lambda: (sa.LowDegreeRegressor(2), BITS, SHORT),
    "LowDegreeRegressor(kernel)": lambda: (sa.LowDegreeRegressor(2, solver="kernel"), BITS, SHORT),
    "LowDegreeClassifier": lambda: (sa.LowDegreeClassifier(1), BITS, labels(SHORT)),
    "LowDegreeRegressorCV": lambda: (sa.LowDegreeRegressorCV((0, 1), (1.0,), cv=2), BITS, SHORT),
    "DSMRegressor": lambda: (sa.DSMRegressor(8, 4, random_state=0), REALS, Y),
    "CubeGPRegressor": lambda: (sa.CubeGPRegressor(), BITS, SHORT),
    "LettersRegressor": lambda: (sa.LettersRegressor(random_state=0), WORDS, SHORT),
    "LatentRegressor": lambda: (sa.LatentRegressor(degree=1), BITS, SHORT),
    "SparseFourierRegressor": lambda: (sa.SparseFourierRegressor(), BITS, SHORT),
    "SparselyActivatedRegressor": lambda: (sa.SparselyActivatedRegressor(n_units=2, random_state=0), BITS, SHORT),
}


def answer(model: Any, queries: Any) -> Any:
    """Numbers that tell states of a model apart."""
    ask = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    return np.asarray(getattr(model, ask)(queries), dtype=np.float64)


class Storm:
    """One model, its possible states, and what threads saw that is none of them."""

    def __init__(self, name: str, folder: Path) -> None:
        blank, self.X, self.y = LEARNERS[name]()
        self.path, self.wrong, self.n_seen, self.over = folder / "model.safetensors", set[str](), 0, False
        half = len(self.X) // 2
        self.queries = self.X[::3]
        if hasattr(blank, "partial_fit"):
            self.model = blank.fit(self.X[:half], self.y[:half])
            self.updates = [self.add] * N_UPDATES
            if hasattr(blank, "merge"):
                fresh = self.model.blank() if hasattr(blank, "blank") else deepcopy(LEARNERS[name]()[0])
                self.part = fresh.partial_fit(self.X[half:], self.y[half:])
                self.updates[::3] = [self.merge] * len(self.updates[::3])
            states = [self.model]
            for _ in self.updates:
                states.append(deepcopy(states[-1]).partial_fit(self.X[half:], self.y[half:]))
        else:
            other = deepcopy(blank).fit(self.X[half:], self.y[half:])
            self.model = blank.fit(self.X[:half], self.y[:half])
            self.updates = [self.fit_last, self.fit_first] * 2
            states = [self.model, other]
        self.due = [answer(deepcopy(state), self.queries) for state in states]

    def add(self) -> None:
        half = len(self.X) // 2
        self.model.partial_fit(self.X[half:], self.y[half:])

    def merge(self) -> None:
        self.model.merge(self.part)

    def fit_first(self) -> None:
        half = len(self.X) // 2
        self.model.fit(self.X[:half], self.y[:half])

    def fit_last(self) -> None:
        half = len(self.X) // 2
        self.model.fit(self.X[half:], self.y[half:])

    def check(self, what: str, found: Any) -> None:
        """Note an answer that no state gives."""
        self.n_seen += 1
        if not any(np.allclose(found, due, rtol=1e-7, atol=1e-9) for due in self.due):
            self.wrong.add(f"{what} belongs to no state")

    def ask(self) -> None:
        self.check("predict", answer(self.model, self.queries))

    def ask_for_one(self) -> None:
        found = answer(self.model, self.queries[:1])
        if not any(np.allclose(found, due[:1], rtol=1e-7, atol=1e-9) for due in self.due):
            self.wrong.add("predict of a row belongs to no state")

    def ask_for_intervals(self) -> None:
        if hasattr(self.model, "predict_interval"):
            ends = np.asarray(self.model.predict_interval(self.queries))
            self.check("the middle of an interval", ends.mean(axis=-1))

    def pickle(self) -> None:
        if hasattr(self.model, "table_"):  # of others it is not promised: caches are filled while they are pickled
            self.check("predict of a pickle", answer(pickle.loads(pickle.dumps(self.model)), self.queries))

    def save(self) -> None:
        self.model.save(self.path)
        self.check("predict of a file", answer(sa.load(self.path), self.queries))

    def until_over(self, *steps: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            while not self.over:
                for step in steps:
                    self.guarded(step)

        return run

    def guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self.wrong.add(f"{step.__name__}: {error!r}")

    def run(self, seconds: float) -> dict[str, Any]:
        """Change the model from two threads, spread over this time, and ask it from three."""

        def change(updates: list[Callable[[], None]]) -> None:
            for update in updates:
                self.guarded(update)
                time.sleep(seconds / len(updates))

        asking = [(self.ask, self.ask_for_one), (self.ask, self.ask_for_intervals), (self.pickle, self.save)]
        readers = [Thread(target=self.until_over(*steps)) for steps in asking]
        in_turn = hasattr(self.model, "partial_fit")  # which of two fits comes last is chance
        parts = [self.updates[::2], self.updates[1::2]] if in_turn else [self.updates]
        writers = [Thread(target=change, args=(part,)) for part in parts]
        for thread in [*readers, *writers]:
            thread.start()
        for thread in writers:
            thread.join()
        self.over = True
        for thread in readers:
            thread.join()
        last = self.due[-1] if in_turn else self.due[0]
        if not np.allclose(answer(self.model, self.queries), last, rtol=1e-7, atol=1e-9):
            self.wrong.add("the last state is not that of all updates")
        return {"wrong": sorted(self.wrong), "n_seen": self.n_seen}


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    for name in sys.argv[2:] or LEARNERS:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"name": name, **Storm(name, Path(folder)).run(float(sys.argv[1]))}), flush=True)
