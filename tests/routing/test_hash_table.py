"""Tables from tokens to experts: balanced by counts, clustered by embeddings; hyperplanes that learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsact.routing import HashTable, HyperplaneLSH, LearnedLSH, balanced_table, clustered_table


@pytest.mark.parametrize("n_active", [1, 2, 5])
def test_loads_differ_by_no_more_than_the_largest_count(n_active):
    counts = np.random.default_rng(3).zipf(1.6, 211).clip(max=90)
    table = balanced_table(counts, 7, n_active=n_active)
    load = np.zeros(7)
    for row, count in zip(table, counts, strict=True):
        assert len(set(row.tolist())) == n_active
        load[row] += count
    assert load.sum() == n_active * counts.sum()
    assert load.max() - load.min() <= counts.max()


def test_a_fresh_table_gives_every_expert_as_many_ids():
    router = HashTable(30, 4, 2)
    tables = [router.initial_state(1, rng=np.random.default_rng(seed))["table"] for seed in (0, 1)]
    for table in tables:
        assert np.bincount(table.ravel(), minlength=4).tolist() == [15] * 4
    assert not np.array_equal(*tables)


def test_near_embeddings_share_experts():
    rng = np.random.default_rng(5)
    centres, own = 9.0 * np.eye(4, 6), rng.integers(4, size=50)
    rows = centres[own] + 0.1 * rng.normal(size=(50, 6))
    table = clustered_table(rows, 4, random_state=1)[:, 0]
    for i in range(4):
        assert len(set(table[own == i].tolist())) == 1
    assert len(set(table.tolist())) == 4
    two = clustered_table(rows, 4, n_active=2, random_state=1)
    assert (two == table[:, None]).any(axis=1).all()


def test_ids_beyond_the_table_begin_again():
    router = HashTable(5, 3)
    ids = np.array([[0], [4], [5], [-1], [2**40]])
    units = router(ids).indices[:, 0]
    assert units[2] == units[0]
    assert units[3] == units[1]
    assert units[4] == router([[2**40 % 5]]).indices[0, 0]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: balanced_table([1, -1], 2), "`counts` must be one number from 0"),
        (lambda: balanced_table([[1.0]], 2), "`counts` must be one number from 0"),
        (lambda: balanced_table([1, 2], 2, n_active=3), "3 of 2 units"),
        (lambda: clustered_table([[1.0]], 2), "needs a row for each of 2 experts"),
        (lambda: HashTable(5, 2, 3), "3 of 2 units"),
    ],
)
def test_what_makes_no_table(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()


def test_hyperplanes_move_by_the_gradient_of_the_bucket_s_probability():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    directions = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    pull = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    chosen = LearnedLSH(3, 2).select(x, {"directions": directions}, training=True)
    assert torch.equal(chosen.weights.detach(), torch.ones(9, 2, dtype=torch.float64))
    plain = HyperplaneLSH(3, 2).select(x, {"directions": directions})
    assert torch.equal(chosen.indices, plain.indices)
    (found,) = torch.autograd.grad((pull * chosen.weights).sum(), directions)
    wanted = torch.zeros(2, 3, 4, dtype=torch.float64)
    for i in range(9):
        for s in range(2):
            bits = [int(plain.indices[i, s]) >> j & 1 for j in range(3)]
            z = [float(x[i] @ directions.detach()[s, j]) for j in range(3)]
            p = [1 / (1 + np.exp(-v if bit else v)) for v, bit in zip(z, bits, strict=True)]
            for j in range(3):
                slope = np.prod(p) * (1 - p[j]) * (1 if bits[j] else -1)
                wanted[s, j] += pull[i, s] * slope * x[i]
    torch.testing.assert_close(found, wanted)
    assert found.abs().max() > 0.01
