"""A script as a user writes it; mypy --strict reads it, nobody runs it."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import sparsact
from sparsact import LowDegreeClassifier, LowDegreeRegressor, LSHRegressor, SparselyActivatedNetwork, constructions
from sparsact.fourier import Spectrum

X = 1 - 2 * np.random.default_rng(0).integers(0, 2, (100, 5))
y = X[:, 0] * X[:, 1]

regressor = LowDegreeRegressor(degree=2)
assert_type(regressor.fit(X, y), LowDegreeRegressor)
assert_type(regressor.predict(X), NDArray[np.float64])
