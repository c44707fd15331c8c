"""A script as a user writes it: mypy --strict reads it in ``test_user_script.py``, and nobody runs it."""

from pathlib import Path
from typing import assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import sparsact
from sparsact.fourier import Spectrum
from sparsact.inference import Measurement

X = 1 - 2 * np.random.default_rng(0).integers(0, 2, (100, 5))
y = X[:, 0] * X[:, 1]

regressor = sparsact.LowDegreeRegressor(degree=2)
assert_type(regressor.fit(X, y), sparsact.LowDegreeRegressor)
assert_type(regressor.predict(X), NDArray[np.float64])
assert_type(sparsact.LowDegreeRegressorCV().fit(X, y), sparsact.LowDegreeRegressorCV)
assert_type(sparsact.LSHRegressor().fit(X, y).predict(X), NDArray[np.float64])
assert_type(sparsact.LSHClassifier().fit(X, y), sparsact.LSHClassifier)
assert_type(sparsact.LowDegreeClassifier().fit(X, y).predict_proba(X), NDArray[np.float64])
assert_type(sparsact.SparselyActivatedRegressor(n_units=4).fit(X, y), sparsact.SparselyActivatedRegressor)
regressor.save(Path("model.sparsact"))
sparsact.load("model.sparsact").predict(X)  # any kind of model: nothing is known of it before the file is read

network = sparsact.constructions.parity((0, 2), 5)
assert_type(network, sparsact.SparselyActivatedNetwork)
assert_type(network(X), NDArray[np.float64])
assert_type(sparsact.certify(network), sparsact.Certificate)
assert_type(Spectrum.of(network), Spectrum)

block = torch.nn.Sequential(torch.nn.Linear(4, 9), torch.nn.ReLU(), torch.nn.Linear(9, 4))
assert_type(sparsact.measure(block, [torch.ones(3, 4)]), Measurement)
assert_type(sparsact.sparsify(block, "exact"), torch.nn.Sequential)
assert_type(sparsact.densify(block), torch.nn.Sequential)
