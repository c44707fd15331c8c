"""No result depends on the number of threads, on other threads, or on a fork."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from sparsact import (
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    SparselyActivatedNetwork,
    fourier,
    kernels,
)

THREADS = (1, 2, 3, -1, 10**6)
rng = np.random.default_rng(0)
m, n = 1403, 9
SIGNS = 1 - 2 * rng.integers(0, 2, (m, n))
COLUMNS = rng.normal(size=(m, n))
Y = rng.normal(size=m) + SIGNS[:, 0] * SIGNS[:, 1]
FIXED = {"degree": 1, "directions": "principal", "random_state": 0}
QUICK = [("pca_grid", 1), ("euclidean", 0), ("hyperplane", 1)]
GRIDS = [
    pytest.param(family, degree, marks=[] if (family, degree) in QUICK else pytest.mark.slow)
    for family in ("pca_grid", "euclidean", "hyperplane")
    for degree in (0, 1, 2)
]


def low_degree(solver, n_jobs):
    rows = slice(0, 200) if solver == "kernel" else slice(None)
    X = COLUMNS if solver == "real" else SIGNS
    alpha = 0.01 if solver == "lasso" else 0.0
    model = LowDegreeRegressor(2, alpha, solver="auto" if solver == "real" else solver, n_jobs=n_jobs)
    model.fit(X[rows], Y[rows])
    return [model.coefficients_, model.predict(X), np.array([model.r2_])]


def others(n_jobs):
    choice = LowDegreeRegressorCV(range(1, 5), n_jobs=n_jobs).fit(SIGNS, Y)
    classes = LowDegreeClassifier(3, n_jobs=n_jobs).fit(SIGNS, Y > 0)
    tables = LSHClassifier(3, **FIXED, n_jobs=n_jobs).fit(COLUMNS[:300], Y[:300] > 0)
    return [choice.cv_results_["fold_mse"], classes.predict_proba(SIGNS), tables.predict_proba(COLUMNS)]


def buckets(family, degree, n_jobs):
    fixed = FIXED | {"family": family, "degree": degree, "n_hashes": 4}
    model = LSHRegressor(3, **fixed, n_jobs=n_jobs)
    model.fit(COLUMNS[:200], Y[:200])
    return [model.predict(COLUMNS), model.predict_interval(COLUMNS[:99])]


def same_bits(results):
    first, *rest = ([array.tobytes() for array in arrays] for arrays in results)
    for other in rest:
        assert other == first


@pytest.mark.parametrize("solver", ["cells", "moments", "kernel", "correlation", "lasso", "real"])
def test_polynomials(solver):
    same_bits([low_degree(solver, n_jobs) for n_jobs in THREADS])


@pytest.mark.grid
def test_folds_and_classes():
    same_bits([others(n_jobs) for n_jobs in THREADS])


@pytest.mark.parametrize(("family", "degree"), GRIDS)
def test_buckets(family, degree):
    same_bits([buckets(family, degree, n_jobs) for n_jobs in THREADS])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_transforms(dtype):
    table = rng.integers(-1000, 1000, (3, 2**16)).astype(dtype) * (dtype(0.1) if dtype in (float, np.float32) else 1)
    tables = [table.astype(dtype).copy() for _ in THREADS]
    for one, n_threads in zip(tables, (1, 2, 3, 5, 10**6), strict=True):
        kernels.walsh_hadamard(one, n_threads=n_threads)
    same_bits([[one] for one in tables])


def kernel_results(n_threads):
    """What the kernels with threads of their own return."""
    g = np.random.default_rng(3)
    X, W, A = g.normal(size=(37, 61)), g.normal(size=(91, 61)), g.normal(size=(37, 91))
    places = kernels.top_k(A, 7, n_threads=n_threads)
    dots = kernels.gather_dot(X, W, places, n_threads=n_threads)
    sums = kernels.gather_sum(np.ascontiguousarray(dots), W, places, n_threads=n_threads)
    masked = kernels.top_k_masked(A, 7, n_threads=n_threads)
    return [places, dots, sums, masked]


def test_kernels_of_layers():
    same_bits([kernel_results(n_threads) for n_threads in (1, 2, 3, 5, 10**6)])


PRINTED = """
import sys; sys.path.insert(0, {folder!r})
import test_threads as t
print(t.digest_of(t.low_degree("moments", None) + t.others(None) + t.buckets("pca_grid", 1, None)))
"""


def digest_of(arrays):
    return sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


@pytest.mark.slow
def test_the_environment_sets_no_result():
    script = PRINTED.format(folder=str(Path(__file__).parent))
    printed = []
    for number in ("1", "3"):
        environment = {**os.environ, "OMP_NUM_THREADS": number, "OPENBLAS_NUM_THREADS": "1"}
        ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
        printed.append(ran.stdout)
    assert printed[0] == printed[1] != b""


@pytest.mark.grid
def test_estimators_in_threads_of_python():
    tasks = [
        lambda: low_degree("moments", 2),
        lambda: low_degree("cells", 2),
        lambda: buckets("pca_grid", 1, 2),
        lambda: buckets("euclidean", 0, 1),
        lambda: kernel_results(2),
    ]
    expected = [[array.tobytes() for array in task()] for task in tasks]
    with ThreadPoolExecutor(5) as pool:
        found = [pool.submit(task) for task in tasks * 2]
        for i, future in enumerate(found):
            assert [array.tobytes() for array in future.result()] == expected[i % len(tasks)]


MODELS = {
    "cells": lambda: LowDegreeRegressor(2, solver="cells").fit(SIGNS, Y),
    "merged": lambda: LowDegreeRegressor(2).partial_fit(SIGNS[:700], Y[:700]).partial_fit(SIGNS[700:], Y[700:]),
    "kernel": lambda: LowDegreeRegressor(2, solver="kernel").fit(SIGNS[:300], Y[:300]),
    "buckets": lambda: LSHRegressor(3, **FIXED).fit(SIGNS[:400], Y[:400]),
    "streamed": lambda: LSHRegressor(3, **FIXED).partial_fit(SIGNS[:400], Y[:400]),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_model_asked_by_many_threads_at_once(name):
    expected = MODELS[name]().predict(SIGNS).tobytes()
    for _ in range(3):
        model = MODELS[name]()  # not yet solved, where rows came in pieces
        with ThreadPoolExecutor(6) as pool:
            for future in [pool.submit(model.predict, SIGNS) for _ in range(12)]:
                assert future.result().tobytes() == expected


def test_a_network_asked_by_many_threads_at_once():
    net = SparselyActivatedNetwork(rng.normal(size=33), rng.normal(size=(33, n)), rng.normal(size=33))
    expected = net(SIGNS).tobytes(), fourier.Spectrum.of(net).coefficients.tobytes()
    with ThreadPoolExecutor(4) as pool:
        for values, spectrum in [
            (pool.submit(net, SIGNS), pool.submit(lambda: fourier.Spectrum.of(net).coefficients)) for _ in range(6)
        ]:
            assert (values.result().tobytes(), spectrum.result().tobytes()) == expected


def work_in_a_child(answers):
    table = np.random.default_rng(1).normal(size=(2, 2**16))
    kernels.walsh_hadamard(table, n_threads=2)
    answers.put(digest_of([*low_degree("moments", 2), *kernel_results(0), table]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_after_threads_does_not_hang():
    """The threads of OpenMP do not survive a fork; a child that waited for them would wait for ever."""
    table = np.random.default_rng(1).normal(size=(2, 2**16))
    kernels.walsh_hadamard(table, n_threads=2)
    expected = digest_of([*low_degree("moments", 2), *kernel_results(2), table])
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    children = [fork.Process(target=work_in_a_child, args=(answers,)) for _ in range(2)]
    for child in children:
        child.start()
    try:
        for child in children:
            child.join(60)
            assert child.exitcode is not None, "the child hangs"
    finally:
        for child in children:
            child.kill()
    assert [answers.get() for _ in children] == [expected] * 2
    same_bits([low_degree("moments", 2), low_degree("moments", 1)])  # the parent still has its threads
