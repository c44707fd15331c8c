"""Training by RMSProp: PyTorch's own optimiser on the same batches, and going on after a pause."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsact import DSMRegressor
from sparsact.learners.dsm.training import RMSProp, TopLayer, features_by_rows

rng = np.random.default_rng(31)
X, Y = rng.normal(size=(70, 5)), rng.normal(size=(70, 3))


def model(**changes):
    return DSMRegressor(
        **({"n_units": 33, "n_active": 8, "solver": "rmsprop", "learning_rate": 1e-3, "random_state": 1} | changes)
    )


def torch_top_k(B: torch.Tensor, rows: torch.Tensor, k: int) -> torch.Tensor:
    z = rows @ B.T
    return torch.zeros_like(z).scatter(1, torch.topk(z, k).indices, 1.0) * z


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("rho", "epsilon"), [(0.9, 1e-7), (0.99, 1e-8)])
def test_epochs_are_those_of_plain_torch(fit_intercept, rho, epsilon):
    B = rng.normal(size=(33, 5))
    top = TopLayer.glorot(33, 3, rng=np.random.default_rng(0))
    linear = torch.nn.Linear(33, 3, bias=fit_intercept, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(top.A))
        if fit_intercept:
            linear.bias.zero_()
    optimiser = torch.optim.RMSprop(linear.parameters(), lr=1e-3, alpha=rho, eps=epsilon)
    rows, targets, bottom = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(B)
    everything = torch_top_k(bottom, rows, 8).numpy()
    for epoch in range(3):
        top.epoch(
            everything.__getitem__,
            Y,
            np.ones(70),
            RMSProp(1e-3, rho, epsilon),
            batch_size=16,
            fit_intercept=fit_intercept,
            rng=np.random.default_rng(epoch),
        )
        losses = []
        for batch in np.split(np.random.default_rng(epoch).permutation(70), range(16, 70, 16)):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(linear(torch_top_k(bottom, rows[batch], 8)), targets[batch])
            loss.backward()
            optimiser.step()
            losses.append(loss.item() * len(batch) / 70)
        np.testing.assert_allclose(top.A, linear.weight.detach().numpy(), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(top.losses[epoch], sum(losses), rtol=1e-9)
    if fit_intercept:
        np.testing.assert_allclose(top.intercept, linear.bias.detach().numpy(), rtol=1e-6, atol=1e-12)
        assert top.intercept.all()
    else:
        assert not top.intercept.any()


def test_an_estimator_trains_on_the_features_of_its_layer():
    found = model(epochs=2, batch_size=20, fit_intercept=False).fit(X, Y)
    torch_features = torch_top_k(
        torch.from_numpy(found.layer_.bottom.B), torch.from_numpy(X - found.layer_.bottom.centre), 8
    ).numpy()
    np.testing.assert_allclose(found.predict(X), torch_features @ found.coefficients_.T, rtol=1e-12)


def test_pieces_of_training_are_the_whole():
    whole = model(epochs=4).fit(X, Y)
    pieces = model()
    for _ in range(4):
        pieces.partial_fit(X, Y)
    np.testing.assert_allclose(pieces.coefficients_, whole.coefficients_, rtol=1e-9)
    np.testing.assert_allclose(pieces.loss_curve_, whole.loss_curve_, rtol=1e-9)
    kept, again = (features_by_rows(whole.layer_, X, 4, most) for most in (10**6, 0))  # 0: for each batch again
    batch = np.array([5, 3, 60])
    np.testing.assert_allclose(again(batch), kept(batch), rtol=1e-12)
    np.testing.assert_allclose(again(batch), whole.layer_.features(X)[batch], rtol=1e-12)


def test_training_lowers_the_loss_towards_the_closed_form():
    generator = np.random.default_rng(3)
    rows = generator.uniform(-1, 1, size=(600, 2))
    y = np.abs(rows[:, 0] - rows[:, 1])
    trained = model(n_units=64, n_active=16, learning_rate=3e-3, epochs=150).fit(rows, y)
    curve = trained.loss_curve_
    assert len(curve) == 150
    assert curve[-1] < 0.1 * curve[0]
    best = DSMRegressor(64, 16, alpha=0.0, random_state=1).fit(rows, y)
    np.testing.assert_array_equal(best.layer_.bottom.B, trained.layer_.bottom.B)
    assert np.mean((best.predict(rows) - y) ** 2) < np.mean((trained.predict(rows) - y) ** 2) < 0.02 * y.var()


def test_weights_weigh_the_mean_of_a_batch():
    """In one batch, repeating a row is weighing it."""
    counts = rng.integers(0, 3, size=70)
    weighted = model(batch_size=1000, epochs=5).fit(X, Y, counts)
    repeated = model(batch_size=1000, epochs=5).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    np.testing.assert_allclose(weighted.coefficients_, repeated.coefficients_, rtol=1e-8)
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-10)


def test_what_is_trained_cannot_be_merged():
    assert not hasattr(model(), "merge")
    with pytest.raises(AttributeError, match="merge"):
        model().merge  # noqa: B018 - the attribute is what is asked for


def test_ridge_has_no_loss_curve_and_no_training_to_go_on_with():
    fitted = model(solver="ridge").fit(X, Y)
    with pytest.raises(AttributeError, match="rmsprop"):
        _ = fitted.loss_curve_
    with pytest.raises(ValueError, match="call fit to start again"):
        fitted.set_params(solver="rmsprop").partial_fit(X, Y)
