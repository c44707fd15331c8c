from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsact import (
    CubeGPRegressor,
    DSMRegressor,
    LatentRegressor,
    LettersRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    Monomials,
    SparseFourierRegressor,
    SparselyActivatedClassifier,
    SparselyActivatedRegressor,
)


def checked(estimators):
    """One item for each estimator, with all of scikit-learn's checks of it."""
    by_estimator = {}
    for estimator, check in parametrize_with_checks(estimators).mark.args[1]:
        by_estimator.setdefault(id(estimator), []).append((estimator, check))
    return pytest.mark.parametrize("checks", by_estimator.values(), ids=map(repr, estimators))


def find_nothing(checks):
    """Run all checks; an ExceptionGroup names the ones that fail."""
    errors = []
    for estimator, check in checks:
        try:
            check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            error.add_note(f"in {check}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} checks of {estimator} fail", errors)


# Estimators whose checks take less than a second; the next test has the others.
@checked(
    [
        LowDegreeRegressor(),
        LowDegreeClassifier(),
        Monomials(),
        LowDegreeRegressorCV(degrees=(0, 1), alphas=(0.0, 3.0), cv=2),
        DSMRegressor(40, 9, bottom="pca", activation="relu", bias=True, alpha=0.1),
        SparseFourierRegressor(degree=2),
        LatentRegressor(degree=1),
    ]
)
def test_scikit_learn_finds_nothing_to_say(checks):
    """No expected failures. scikit-learn itself skips its array-API check unless SCIPY_ARRAY_API is set."""
    find_nothing(checks)


@pytest.mark.grid
@checked(
    [
        LowDegreeRegressor(degree=1, alpha=0.3, domain="real", fit_intercept=False),
        LSHRegressor(2, family="euclidean", bucket_width=1.0, degree=0, fallback="mean", n_stages=1, alpha=0.1),
        CubeGPRegressor(),
        SparselyActivatedRegressor(n_units=3, max_active=3, max_weight=99.0, max_bias=99.0, n_restarts=1, max_iter=3),
        CubeGPRegressor("product + degree", n_hyperparameter_rows=20),
        LatentRegressor("gp", degree=1),
        LatentRegressor(degree=1, link="monotone"),
        LSHClassifier(2, n_hashes=2, bucket_width=1.0, degree=1, alpha=0.1, directions="principal"),
        SparselyActivatedClassifier(n_units=3, n_restarts=0, max_iter=3),
    ]
)
def test_scikit_learn_finds_nothing_to_say_of_slower_ones(checks):
    find_nothing(checks)


@pytest.mark.slow
@checked(
    [
        LowDegreeRegressor(degree="auto"),
        LowDegreeRegressor(degree=3, domain="real"),  # one check has 30 real columns, so 4,525 monomials
        LowDegreeRegressorCV(),
        LowDegreeClassifier(degree=1, alpha=2.0),
        SparselyActivatedRegressor(n_restarts=2),
        LettersRegressor(),
        LSHRegressor(),
        LSHRegressor(n_tables=2, family="hyperplane", degree=2),
        LSHClassifier(),
        DSMRegressor(),
        # One batch: in several, a row of weight 2 is not the same as two rows. At the optimum, rounding turns steps.
        DSMRegressor(64, 20, solver="rmsprop", learning_rate=0.005, batch_size=500, epochs=60),
    ]
)
def test_scikit_learn_finds_nothing_to_say_of_dear_ones(checks):
    find_nothing(checks)
