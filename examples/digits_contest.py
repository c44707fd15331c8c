"""One side of a contest: learn scikit-learn's handwritten digits from pairs of pixels, and print what it took.

Run it as ``python examples/digits_contest.py sparsact`` or ``... scikit-learn``. Both sides fit the same model (degree
2, the same ridge penalty, pixels as signs) to the same rows, so they agree in accuracy and differ in what it costs.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from sparsact import LowDegreeClassifier
from sparsact.hypercube import bits_to_signs
from sparsact.memory import peak_memory

SIDES = {"sparsact": "sparsact", "scikit-learn": "scikit-learn's PolynomialFeatures + RidgeClassifier"}
ALPHA = 1000.0


def bits_and_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The 1,797 digits: 64 pixels as bits (ink or not), and which digit each is."""
    digits = load_digits()
    return (digits.data > 7).astype(np.uint8), digits.target


def learner(side: str) -> Any:
    """The classifier of a side, not yet fitted."""
    if side == "sparsact":
        return LowDegreeClassifier(degree=2, alpha=ALPHA, n_jobs=1)
    return make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), RidgeClassifier(alpha=ALPHA))


def compete(side: str) -> dict[str, float]:
    """Accuracy on a quarter of the rows held out, seconds, and peak memory above what the data and libraries take."""
    bits, digits = bits_and_digits()
    X_train, X_test, y_train, y_test = train_test_split(
        bits_to_signs(bits), digits, test_size=0.25, random_state=0, stratify=digits
    )
    model = learner(side)
    before = peak_memory()
    start = perf_counter()
    model.fit(X_train, y_train)
    fitted = perf_counter()
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return {
        "accuracy": accuracy,
        "fit_seconds": fitted - start,
        "predict_seconds": perf_counter() - fitted,
        "peak_bytes": peak_memory() - before,
    }


if __name__ == "__main__":
    if sys.argv[1:] not in [[side] for side in SIDES]:
        raise SystemExit(f"usage: python examples/digits_contest.py {'|'.join(SIDES)}")
    print(json.dumps(compete(sys.argv[1])))
