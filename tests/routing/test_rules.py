"""The units of each router, by brute force."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from routed import D, M, inputs, state_of
from scipy import stats

from sparsact import routing
from sparsact.routing import EMPTY, hash_generator
from sparsact.routing.top_k import largest

WORD = 2**64 - 1


# ---- top-k ----


@given(
    rows=st.lists(st.lists(st.sampled_from([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0]), min_size=7, max_size=7), max_size=5),
    k=st.integers(1, 7),
    absolute=st.booleans(),
)
def test_top_k_breaks_ties_by_place(rows, k, absolute):
    x = np.array(rows).reshape(-1, 7)
    router = routing.TopK(k, absolute)
    wanted = [sorted(sorted(range(7), key=lambda j: (-(abs(row[j]) if absolute else row[j]), j))[:k]) for row in x]
    for got in (router(x).indices, router(torch.tensor(x)).indices.numpy(), router(torch.tensor(x).half()).indices):
        assert got.tolist() == wanted


def test_what_is_not_a_number_is_chosen_within_range():
    """A training that has diverged is not to end in a wrong place of memory; torch.topk takes NaN for the largest."""
    x = torch.tensor([[1.0, torch.nan, 3.0, 2.0], [torch.inf, 0.0, -torch.inf, torch.nan], [1.0, 4.0, 2.0, 3.0]])
    assert largest(x, 2).tolist() == [[1, 2], [0, 3], [1, 3]]


# ---- hashes ----


def test_hyperplanes_by_hand():
    router = routing.HyperplaneLSH(2, n_tables=2)
    state = {"directions": [[[1, 0], [0, 1]], [[-1, 0], [1, 1]]]}
    chosen = router([[3, 4], [-3, 4], [0, 0], [1, -1]], state)
    assert chosen.indices.tolist() == [[3, 4 + 2], [2, 4 + 3], [0, 4], [1, 4]]
    assert chosen.counts.tolist() == [1, 1, 1, 1, 2, 0, 1, 1]


def test_hyperplanes_by_brute_force():
    router, x = routing.HyperplaneLSH(3, n_tables=2), inputs()
    normals = state_of(router)["directions"]
    for row, units in zip(x, router(x, {"directions": normals}).indices, strict=True):
        for table, unit in enumerate(units):
            bits = [sum(a * b for a, b in zip(normal, row, strict=True)) > 0 for normal in normals[table]]
            assert unit == table * 8 + sum(bit << i for i, bit in enumerate(bits))


@pytest.mark.parametrize("angle", [0.3, 1.1, 2.9])
def test_inputs_at_an_angle_share_a_bit(angle):
    """With probability 1 - angle / pi; 20,000 independent bits, off by five deviations with probability 6e-7."""
    x = np.zeros((2, D))
    x[0, 1] = 1
    x[1, [1, 3]] = np.cos(angle), np.sin(angle)
    chosen = routing.HyperplaneLSH(1, n_tables=20_000, random_state=5)(x)
    shared = (chosen.indices[0] == chosen.indices[1]).mean()
    p = 1 - angle / np.pi
    assert abs(shared - p) < 5 * np.sqrt(p * (1 - p) / 20_000)


def finished(h):
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB & WORD
    return h ^ (h >> 31)


def keys(n, salt):
    step = 0x9E3779B97F4A7C15
    start = finished((salt + 1) * step & WORD)
    return [finished(finished((i + 1) * step & WORD) ^ start) for i in range(n)]


def test_euclidean_buckets_by_brute_force():
    """In Python's whole numbers: the floor of Datar et al., and the mixture of its bits."""
    router, x = routing.EuclideanLSH(4, 0.75, n_tables=3, n_buckets=11), inputs()
    state = state_of(router)
    units = router(x, state).indices
    for row, got in zip(x, units, strict=True):
        for table in range(3):
            key = keys(3, 0)[table]
            for normal, offset in zip(state["directions"][table], state["offsets"][table], strict=True):
                cell = int(np.floor((sum(a * b for a, b in zip(normal, row, strict=True)) + offset) / 0.75))
                key = (key ^ (cell & WORD)) * 0x9E3779B97F4A7C15 & WORD
                key ^= key >> 32
            assert got[table] == table * 11 + (finished(key) >> 1) % 11


def test_euclidean_offsets_are_uniform_on_a_bucket():
    state = routing.EuclideanLSH(50, 2.5, n_tables=40).initial_state(D, rng=np.random.default_rng(0))
    assert stats.kstest(state["offsets"].ravel() / 2.5, "uniform").pvalue > 1e-4
    assert stats.kstest(state["directions"].ravel(), "norm").pvalue > 1e-4


def test_euclidean_buckets_fill_evenly():
    """4,000 cells on a line, 37 units: chi-squared above this with probability 1e-6 were they drawn at random."""
    router = routing.EuclideanLSH(1, 1.0, n_buckets=37)
    counts = router(np.arange(-2000.0, 2000)[:, None], {"directions": [[[1.0]]], "offsets": [[0.5]]}).counts
    assert stats.chisquare(counts).statistic < stats.chi2.isf(1e-6, 36)


def test_euclidean_cells_beyond_integers_do_not_wrap():
    router = routing.EuclideanLSH(2, 1e-300, n_buckets=7)
    for x in (np.full((2, 1), 1e5), torch.full((2, 1), 1e5, dtype=torch.float64)):
        state = {"directions": np.array([[[1.0], [-1.0]]]), "offsets": np.zeros((1, 2))}
        assert 0 <= int(router(x, state).indices[0, 0]) < 7


def random_hash(router, row, width):
    columns, units = keys(len(row), 2 * router.random_state), keys(width, 2 * router.random_state + 1)
    words = [struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0] for value in row]
    whole = finished(sum(finished(word ^ key) for word, key in zip(words, columns, strict=True)) & WORD)
    ranks = [finished(whole ^ key) >> 11 for key in units]
    return sorted(sorted(range(width), key=lambda j: (-ranks[j], j))[: router.n_active])


@pytest.mark.parametrize("seed", [0, 3, 2**63 - 1])
def test_random_hash_by_whole_numbers_of_python(seed):
    router = routing.RandomHash(3, 7, random_state=seed)
    assert router(inputs()).indices.tolist() == [random_hash(router, row, 7) for row in inputs()]


def test_random_hash_is_pinned():
    """The units of three inputs, for good: on every platform, in every process, whatever holds the numbers."""
    x = np.array([[0.5, -1.0, 3.0], [0.5, -1.0, 3.0000002384185791015625], [0.0, 0.0, 0.0]])
    wanted = [[2, 4, 5], [3, 5, 7], [2, 3, 7]]
    negative_zero = np.where(x == 0, -0.0, x)
    for given_x in (x, x.astype(np.float32), negative_zero, torch.tensor(x), torch.tensor(x).float()):
        assert routing.RandomHash(3, 8, random_state=11)(given_x).indices.tolist() == wanted


def test_random_hash_chooses_every_set_alike():
    """20,000 points of a small grid, 10 sets: chi-squared above this with probability 1e-6 were they drawn."""
    x = np.array(list(itertools.islice(itertools.product(range(-14, 15), repeat=3), 20_000))) / 8
    sets, counts = np.unique(routing.RandomHash(2, 5)(x).indices, axis=0, return_counts=True)
    assert len(sets) == 10
    assert stats.chisquare(counts).statistic < stats.chi2.isf(1e-6, 9)


def test_seeds_of_hashes_differ_from_seeds_of_data():
    x = np.random.default_rng(0).standard_normal((2, D))
    state = routing.HyperplaneLSH(2).initial_state(D, rng=hash_generator(0))
    assert not np.isin(x, state["directions"]).any()
    spawned = np.random.default_rng(0).spawn(1)[0].standard_normal(20)
    assert not np.isin(spawned, hash_generator(0).standard_normal(20)).any()
    np.testing.assert_array_equal(hash_generator(3).random(4), hash_generator(3).random(4))


@pytest.mark.parametrize("kind", [routing.HyperplaneLSH, routing.RandomHash])
def test_another_seed_is_another_hash(kind):
    x = inputs()
    assert (kind(3, random_state=0)(x).indices != kind(3, random_state=1)(x).indices).any()


# ---- points ----


def test_nearest_by_brute_force():
    """Centres on a grid, so that many are equally far; one of them is there twice."""
    x = np.round(inputs())
    centres = np.round(inputs(9, seed=4))
    centres[7] = centres[2]
    router = routing.Nearest(4)
    wanted = [sorted(sorted(range(9), key=lambda j: (((row - centres[j]) ** 2).sum(), j))[:4]) for row in x]
    for library in (np.asarray, torch.tensor):
        assert router(library(x), routing.Nearest.state_of(centres)).indices.tolist() == wanted


def test_interpolation_is_on_at_its_points_alone():
    points = inputs(6, seed=2)
    x = np.concatenate([points[[3, 0]], np.nextafter(points[[1]], 9), points[[5]]])
    for library in (np.asarray, torch.tensor):
        chosen = routing.Interpolation()(library(x), routing.Interpolation.state_of(points))
        assert chosen.indices.tolist() == [[3], [0], [EMPTY], [5]]
        assert chosen.weights.tolist() == [[1], [1], [0], [1]]
        assert not chosen.dropped.any()


def test_interpolation_tells_the_smallest_numbers_from_zero():
    state = routing.Interpolation.state_of([[0.0], [5e-324]])
    x = np.array([[5e-324], [1e-200], [-0.0]])
    for library in (np.asarray, torch.tensor):
        assert routing.Interpolation()(library(x), state).indices.tolist() == [[1], [EMPTY], [0]]


def test_points_of_an_interpolation_are_distinct():
    with pytest.raises(ValueError, match="two points are equal"):
        routing.Interpolation.state_of([[1.0, 2.0], [1.0, 2.0]])


# ---- blocks and trees ----


def test_blocks_by_brute_force():
    router, x = routing.BlockTop1(3, 4, rank=2), inputs()
    state = state_of(router)
    scores = x @ state["down"].T @ state["up"].T
    wanted = [[4 * b + int(np.argmax(row[4 * b : 4 * b + 4])) for b in range(3)] for row in scores]
    for training in (False, True):
        chosen = router(x, state, training=training)
        assert chosen.indices.tolist() == wanted
        assert (chosen.weights == 1).all()


def test_blocks_learn_by_the_probability_of_the_chosen():
    router = routing.BlockTop1(2, 3, rank=2)
    state = {name: torch.tensor(value, requires_grad=True) for name, value in state_of(router).items()}
    x = torch.tensor(inputs())
    coefficients = torch.tensor(inputs(M, 2, seed=7))
    chosen = router.select(x, state, training=True)
    got = torch.autograd.grad((coefficients * chosen.weights).sum(), list(state.values()))
    probabilities = (x @ state["down"].T @ state["up"].T).reshape(M, 2, 3).softmax(-1).amax(-1)
    wanted = torch.autograd.grad((coefficients * probabilities).sum(), list(state.values()))
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b)
    assert not router.select(x, state).weights.requires_grad


def walk(row, nodes, biases, depth):
    node = 0
    for _ in range(depth):
        node = 2 * node + 1 + (nodes[node] @ row + biases[node] > 0)
    return node - (2**depth - 1)


def test_trees_by_brute_force():
    router, x = routing.Tree(3), inputs()
    state = state_of(router)
    state["biases"] = np.arange(-3.0, 4) / 4
    assert router(x, state).indices[:, 0].tolist() == [walk(row, state["nodes"], state["biases"], 3) for row in x]
    soft = router(x, state, training=True)
    np.testing.assert_allclose(soft.weights.sum(axis=1), 1, rtol=1e-12)
    right = 1 / (1 + np.exp(-(x @ state["nodes"].T + state["biases"])))
    for leaf in range(8):
        first, second, third = leaf >> 2 & 1, leaf >> 1 & 1, leaf & 1
        path = [(0, first), (1 + first, second), (3 + 2 * first + second, third)]
        product = np.prod([right[:, node] if way else 1 - right[:, node] for node, way in path], axis=0)
        np.testing.assert_allclose(soft.weights[:, leaf], product, rtol=1e-12)


def test_a_steep_tree_is_hard_in_training_too():
    router, x = routing.Tree(3), inputs()
    state = {name: 1e6 * value for name, value in state_of(router).items()}
    np.testing.assert_allclose(router(x, state, training=True).dense(), router(x, state).dense(), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_gradients_of_a_tree(scale):
    router = routing.Tree(2)
    state = {name: torch.tensor(scale * value, requires_grad=True) for name, value in state_of(router).items()}
    x = torch.tensor(inputs(4))
    if scale == 1:
        gradients = torch.autograd.gradcheck(
            lambda *values: router.select(x, dict(zip(state, values, strict=True)), training=True).weights,
            tuple(state.values()),
        )
        assert gradients
    router.select(x, state, training=True).weights[:, 0].sum().backward()
    assert all(value.grad.isfinite().all() for value in state.values())


def test_a_tree_walks_a_path_and_no_more():
    assert routing.Tree(10).flops(D) == 10 * routing.Tree(1).flops(D)
    assert routing.Tree(10).width(D) == 1024
