"""CubeEnsemble: values, spectrum, intervals, weights and its file."""

import numpy as np
import pytest
from scipy.optimize import minimize

import sparsact as sa
from sparsact.hypercube import characters, points, signs_to_bits
from sparsact.learners.stacking import RIDGE, stacking_weights


@pytest.fixture
def ensemble():
    rng = np.random.default_rng(0)
    return sa.CubeEnsemble(rng.normal(size=32), {"a": 0.25, "b": 0.75}, np.abs(rng.normal(size=99)), rng.random(32))


def test_predictions_are_the_values_in_table_order(ensemble):
    bits = signs_to_bits(points(5))
    values = ensemble.predict(bits)
    assert ensemble.predict(bits[::-1].astype(bool)) == pytest.approx(values[::-1])
    assert ensemble.predict(bits[[19]]) == values[19]  # 19 = 0b10011
    assert bits[19].tolist() == [1, 1, 0, 0, 1]


def test_the_spectrum_is_exact(ensemble):
    values = ensemble.predict(signs_to_bits(points(5)))
    for subset in [(), (0,), (1, 4), (0, 1, 2, 3, 4)]:
        expected = (values * characters(points(5), [subset])[:, 0]).mean()
        assert ensemble.spectrum_[subset] == pytest.approx(expected)


def test_intervals_of_coefficients_are_normal(ensemble):
    (error,) = ensemble.standard_errors([(1, 4)])
    (interval,) = ensemble.confidence_intervals([(1, 4)], 0.95)
    centre = ensemble.spectrum_[1, 4]
    assert interval == pytest.approx([centre - 1.959964 * error, centre + 1.959964 * error])
    bare = sa.CubeEnsemble([0.0, 1.0], {"a": 1.0}, [0.1])
    assert np.isnan(bare.confidence_intervals([(0,)])).all()


def test_prediction_intervals_hold_their_share_of_new_rows():
    """In 2,000 draws of 19 residuals and a new one, 90 % are inside: a binomial share within five deviations."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(2_000):
        residuals = np.abs(rng.standard_cauchy(20))
        model = sa.CubeEnsemble([0.0, 0.0], {"a": 1.0}, residuals[1:])
        low, high = model.prediction_intervals([[1]], 0.9)[0]
        inside += low <= residuals[0] <= high
    assert inside / 2_000 == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / 2_000))
    assert np.isinf(sa.CubeEnsemble([0.0, 0.0], {"a": 1.0}, [0.1, 0.2]).prediction_intervals([[0]])).all()


def test_many_residuals_are_thinned_evenly():
    model = sa.CubeEnsemble([0.0, 0.0], {"a": 1.0}, np.arange(100_001.0))
    assert model.prediction_intervals([[0]], 0.5)[0, 1] == pytest.approx(50_000, rel=1e-3)


def test_weights_minimise_the_error_and_the_distance_from_the_prior():
    rng = np.random.default_rng(2)
    for m in (12, 300, 30_000):
        y = rng.normal(size=m)
        predicted = y[:, None] + rng.normal(size=(m, 4)) @ rng.normal(size=(4, 4)) + [0, 0, 0, 2.0]
        prior = np.array([1.0, 1.0, 0.3, 0.0])
        weights = stacking_weights(predicted, y, prior)
        errors = ((predicted - y[:, None]) ** 2).mean(axis=0)
        centre = prior / errors**2 / (prior / errors**2).sum()

        pull = RIDGE / m * errors.min()

        def loss(w, predicted=predicted, y=y, pull=pull, centre=centre):
            return np.mean((predicted @ w - y) ** 2) + pull * np.sum((w - centre) ** 2)

        found = minimize(
            loss,
            centre,
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        assert loss(weights) <= found.fun * (1 + 1e-5)


def test_an_exact_model_gets_all_weight():
    y = np.arange(50.0)
    predicted = np.column_stack([y, y + 1, -y])
    assert stacking_weights(predicted, y, np.full(3, 1 / 3)) == pytest.approx([1, 0, 0], abs=1e-4)


def test_a_file_brings_it_back(ensemble, tmp_path):
    ensemble.save(tmp_path / "model.sparsact")
    again = sa.load(tmp_path / "model.sparsact")
    bits = signs_to_bits(points(5))
    assert again.predict(bits) == pytest.approx(ensemble.predict(bits), rel=0, abs=0)
    assert again.weights_ == ensemble.weights_
    assert again.standard_errors([(2,)]) == ensemble.standard_errors([(2,)])
    assert (again.prediction_intervals(bits) == ensemble.prediction_intervals(bits)).all()
    assert repr(again) == "<CubeEnsemble on 5 coordinates: a 0.25, b 0.75>"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"values": np.zeros(3)}, r"`values` must hold 2\*\*n numbers"),
        ({"residuals": [-1.0]}, "no negative one"),
        ({"deviations": np.zeros(2)}, r"`deviations` has shape \(2,\), and `values` \(4,\)"),
    ],
)
def test_what_is_refused(changed, said):
    given = {"values": np.zeros(4), "weights": {"a": 1.0}, "residuals": [0.0]}
    with pytest.raises(ValueError, match=said):
        sa.CubeEnsemble(**given | changed)


def test_rows_of_another_width_or_value_are_refused(ensemble):
    with pytest.raises(ValueError, match=r"`X` must have 5 columns; got shape \(1, 4\)"):
        ensemble.predict(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="holds 2 at column 0, row 0"):
        ensemble.predict(np.full((1, 5), 2))
