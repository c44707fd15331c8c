import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsact import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    SparselyActivatedRegressor,
)


@parametrize_with_checks(
    [
        LowDegreeRegressor(),
        LowDegreeRegressor(degree=1, alpha=0.3, domain="real", fit_intercept=False),
        LowDegreeRegressor(degree="auto"),
        LowDegreeClassifier(),
        LowDegreeClassifier(degree=1, alpha=2.0),
        LowDegreeRegressorCV(degrees=(0, 1, 2), alphas=(0.0, 3.0), cv=3),
        SparselyActivatedRegressor(n_restarts=2),
        LSHRegressor(),
        LSHRegressor(n_tables=3, family="euclidean", degree=0, fallback="mean"),
        LSHRegressor(n_tables=2, family="hyperplane", degree=2, combine="joint"),
        LSHClassifier(),
        DSMRegressor(),
        DSMRegressor(40, 9, bottom="pca", activation="relu", bias=True, alpha=0.1),
        # One batch: in several, a row of weight 2 is not the same as two rows.
        DSMRegressor(64, 20, solver="rmsprop", learning_rate=0.005, batch_size=500, epochs=100),
        SparselyActivatedRegressor(n_units=6, max_active=3, max_weight=99.0, max_bias=99.0, n_restarts=1, max_iter=40),
    ]
)
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    """No expected failures. scikit-learn itself skips its array-API check unless SCIPY_ARRAY_API is set."""
    check(estimator)


@pytest.mark.slow  # one check has 30 real columns, so 4,525 monomials of degree 3
@parametrize_with_checks([LowDegreeRegressorCV(), LowDegreeRegressor(degree=3, domain="real")])
def test_scikit_learn_finds_nothing_to_say_at_degree_three(estimator, check):
    check(estimator)
