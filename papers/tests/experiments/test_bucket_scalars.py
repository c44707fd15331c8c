"""Scalars of buckets: closed forms against definitions, RMSProp against torch's dense one."""

import numpy as np
import pytest

from sparsact.learners.dsm.training import RMSProp
from sparsact_papers.common import bucket_scalars
from sparsact_papers.common.bucket_scalars import ScalarTraining, bucket_means, shrunken_means, trained_scalars

N_ROWS, N_BUCKETS, BATCH, EPOCHS = 53, 11, 8, 4  # buckets 9 and 10 stay empty; the last batch has 5 rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return np.r_[rng.integers(8, size=N_ROWS - 1), 8], rng.normal(1, 2, size=N_ROWS)  # bucket 8 has a single row


def test_bucket_means_are_means(rows):
    bucket, y = rows
    means = bucket_means(bucket, y, N_BUCKETS, empty=-7.0)
    np.testing.assert_allclose(means[:9], [y[bucket == j].mean() for j in range(9)])
    assert means[9:].tolist() == [-7.0, -7.0]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 4.0])
def test_left_out_error_matches_leaving_out(rows, alpha):
    bucket, y = rows
    mean, expected = y.mean(), 0.0
    for i in range(N_ROWS):
        others = bucket == bucket[i]
        others[i] = False
        weight = others.sum() + alpha
        told = mean + ((y[others] - mean).sum() / weight if weight else 0.0)
        expected += (y[i] - told) ** 2
    deviations = y - mean
    sums = (np.bincount(bucket, values, N_BUCKETS) for values in (np.ones(N_ROWS), deviations, deviations**2))
    assert bucket_scalars._left_out(*sums, alpha) == pytest.approx(expected, rel=1e-12)


def test_shrinkage_follows_the_noise():
    rng = np.random.default_rng(5)
    bucket = np.repeat(np.arange(200), 4)
    signal, noise = rng.normal(size=200)[bucket], rng.normal(size=800)
    clean, none = shrunken_means(bucket, signal, 201)
    assert none == 0
    np.testing.assert_allclose(clean[:200], signal[::4])
    assert clean[200] == pytest.approx(signal.mean())
    assert shrunken_means(bucket, noise, 201)[1] >= 16  # signal over noise is 0, so the best is infinite


def test_training_matches_torch(rows):
    torch = pytest.importorskip("torch")
    bucket, y = rows
    training = ScalarTraining(RMSProp(1e-2, 0.9, 1e-7), BATCH, EPOCHS)
    scalars = trained_scalars(bucket, y, N_BUCKETS, training, rng=np.random.default_rng(7))

    weights = torch.zeros(N_BUCKETS, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.RMSprop([weights], lr=1e-2, alpha=0.9, eps=1e-7)
    rng = np.random.default_rng(7)
    for _ in range(EPOCHS):
        order = rng.permutation(N_ROWS)
        for start in range(0, N_ROWS, BATCH):
            batch = order[start : start + BATCH]
            optimiser.zero_grad()
            errors = weights[torch.as_tensor(bucket[batch])] - torch.as_tensor(y[batch])
            (errors**2).mean().backward()
            optimiser.step()
    np.testing.assert_allclose(scalars, weights.detach().numpy(), rtol=0, atol=1e-12)
    assert scalars[9:].tolist() == [0.0, 0.0]


def test_long_training_reaches_the_means(rows):
    bucket, y = rows
    training = ScalarTraining(RMSProp(1e-3, 0.9, 1e-7), N_ROWS, 8000)
    scalars = trained_scalars(bucket, y, N_BUCKETS, training, rng=np.random.default_rng(0))
    np.testing.assert_allclose(scalars, bucket_means(bucket, y, N_BUCKETS, empty=0.0), atol=2e-3)
