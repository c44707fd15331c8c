import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sparsact_papers.common.convolutional import accuracy, network, trained  # noqa: E402


@pytest.fixture
def images():
    """Made-up images of two kinds, told apart by their mean."""
    rng = np.random.default_rng([0, 1])
    labels = rng.integers(2, size=24, dtype=np.uint8)
    noise = rng.integers(100, size=(24, 3, 32, 32))
    return (noise + 150 * labels[:, None, None, None]).astype(np.uint8), labels


def run(images, *, epochs=2, seed=0):
    model = network(width=12, n_active=6, activation="relu", seed=seed)
    settings = {"epochs": epochs, "batch": 7, "learning_rate": 1e-3, "device": "cpu"}
    return list(trained(model, images, images, **settings, seed=seed))


def test_the_network_is_the_stated_one_and_dsm_keeps_the_largest_half():
    model = network(width=12, n_active=6, activation="relu", seed=0)
    x = torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    first, second, third, layer = (m for m in model if any(True for _ in m.parameters()))
    h = torch.relu(torch.conv2d(x, first.weight, first.bias))
    h = torch.nn.functional.max_pool2d(h, 2)  # after ReLU, as the summary tells
    h = torch.nn.functional.max_pool2d(torch.relu(torch.conv2d(h, second.weight, second.bias)), 2)
    h = torch.relu(torch.conv2d(h, third.weight, third.bias)).reshape(5, 1024)
    z = h @ layer.up_weight.T + layer.up_bias
    kept = torch.where(z > z.sort(dim=1).values[:, [5]], z, 0.0)
    assert ((kept != 0).sum(dim=1) == 6).all()
    expected = torch.relu(kept) @ layer.down_weight + layer.down_bias
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)


def test_models_of_a_seed_share_their_convolutions_and_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    dense, wide, other = (
        network(width=width, n_active=4, activation="relu", seed=seed) for width, seed in ((4, 0), (8, 0), (4, 1))
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    for place in (0, 3, 6):
        assert torch.equal(dense[place].weight, wide[place].weight)
        assert not torch.equal(dense[place].weight, other[place].weight)
    assert dense[-1].out_features == wide[-1].out_features == 10


def test_a_dense_layer_is_the_sparse_one_with_every_unit_on():
    dense = network(width=12, n_active=12, activation="relu", seed=0)
    sparse = network(width=12, n_active=2, activation="relu", seed=0)
    with torch.no_grad():
        sparse[-1].up_weight.copy_(dense[-3].weight)
        sparse[-1].up_bias.copy_(dense[-3].bias)
        sparse[-1].down_weight.copy_(dense[-1].weight.T)
        sparse[-1].down_bias.copy_(dense[-1].bias)
    x = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    features = sparse[:-1](x)
    every = sparse[-1].masked(features, torch.ones(3, 12))
    torch.testing.assert_close(every, dense(x), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(sparse(x), dense(x))


def test_an_epoch_is_adam_on_every_image_once_in_the_order_of_the_seed(images):
    first, second = run(images, epochs=2)
    model = network(width=12, n_active=6, activation="relu", seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.tensor(images[0]) / 255, torch.tensor(images[1]).long()
    orders = np.random.default_rng([0, 3])
    for epoch in (first, second):
        total = 0.0
        for rows in np.array_split(orders.permutation(24), [7, 14, 21]):
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += len(rows) * loss.item()
        assert epoch.loss == pytest.approx(total / 24, rel=1e-4)
        assert epoch.accuracy == pytest.approx((model(x).argmax(dim=1) == y).double().mean().item(), abs=1 / 24)
    assert second.loss < first.loss


def test_training_learns_what_can_be_learned(images):
    assert run(images, epochs=8)[-1].accuracy == 1.0


def test_accuracy_counts_the_images_past_the_last_whole_batch(images):
    model = network(width=12, n_active=12, activation="relu", seed=0)
    with torch.no_grad():
        labels = model(torch.tensor(images[0]) / 255).argmax(dim=1).numpy()
    labels[-1] = (labels[-1] + 1) % 10
    assert accuracy(model, images[0], labels, at_once=7) == 23 / 24
