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


# Every estimator once, small; other parameters of theirs, and larger defaults, are slow.
@parametrize_with_checks(
    [
        LowDegreeRegressor(),
        LowDegreeRegressor(degree=1, alpha=0.3, domain="real", fit_intercept=False),
        LowDegreeClassifier(),
        Monomials(),
        LowDegreeRegressorCV(degrees=(0, 1, 2), alphas=(0.0, 3.0), cv=3),
        LSHRegressor(n_tables=3, family="euclidean", degree=0, fallback="mean"),
        LSHClassifier(n_tables=2, n_hashes=2, bucket_width=1.0),
        DSMRegressor(40, 9, bottom="pca", activation="relu", bias=True, alpha=0.1),
        SparseFourierRegressor(degree=2),
        CubeGPRegressor(),
        CubeGPRegressor("product + degree", n_hyperparameter_rows=20),
        LatentRegressor(degree=1),
        LatentRegressor("gp", degree=1),
        LatentRegressor(degree=1, link="monotone"),
        SparselyActivatedRegressor(n_units=6, max_active=3, max_weight=99.0, max_bias=99.0, n_restarts=1, max_iter=20),
        SparselyActivatedClassifier(n_units=6, n_restarts=1, max_iter=20),
    ]
)
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    """No expected failures. scikit-learn itself skips its array-API check unless SCIPY_ARRAY_API is set."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
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
def test_scikit_learn_finds_nothing_to_say_of_other_parameters(estimator, check):
    check(estimator)
