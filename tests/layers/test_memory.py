"""Memories: rows by hashed n-grams and by product keys, their gradients, padding and documents."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from grids import grid
from memory_layers import BOTH, d, hashing, products, seeded, states, texts
from scipy import stats

from sparsact.layers import routing_losses
from sparsact.routing import EMPTY, ProductKeys, RoutingStatistics

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


# ---- n-grams ----


def test_an_output_is_the_gated_sum_of_its_rows():
    layer, ids, x = hashing(), texts(2, 7), states(2, 7)
    y, selection = layer.forward_with_selection(ids, context=x)
    for row, state, found in zip(selection.indices, x.flatten(0, 1), y.flatten(0, 1), strict=True):
        memory = sum(layer.values[slot] for slot in row)
        key = layer.key_weight @ memory
        key, state = (u / (u.square().mean() + torch.finfo(u.dtype).eps).sqrt() for u in (key, state))
        alpha = 1 / (1 + torch.exp(-(layer.gain * state * key).sum() / d**0.5))
        torch.testing.assert_close(found, alpha * memory)


def test_equal_n_grams_and_no_others_share_all_slots():
    """With 8 bigrams and 4 tables of about 10**6 slots, two others share a slot with probability below 1e-4."""
    layer, ids = hashing(4_000_000, n_hashes=2, gate=False), torch.tensor([3, 1, 4, 1, 5, 3, 1, 4, 2])
    slots = layer.route(ids).indices
    before = [tuple(ids[max(0, i - 2) : i + 1].tolist()) for i in range(9)]
    for i in range(9):
        for j in range(9):
            bigram = (slots[i, :2] == slots[j, :2]).tolist()
            trigram = (slots[i, 2:] == slots[j, 2:]).tolist()
            assert bigram == 2 * [before[i][-2:] == before[j][-2:]]
            assert trigram == 2 * [before[i] == before[j]]


def test_no_token_reads_a_later_one():
    layer, ids, x = hashing(), texts(3, 8), states(3, 8)
    y = layer(ids, context=x)
    for t in range(1, 8):
        changed, other = ids.clone(), x.clone()
        changed[:, t:], other[:, t:] = 8 - ids[:, t:], 0
        torch.testing.assert_close(layer(changed, context=other)[:, :t], y[:, :t], rtol=0, atol=0)


def test_the_last_tokens_alone_are_as_in_the_whole_text():
    layer, ids, x = hashing(), texts(3, 8), states(3, 8)
    whole = layer(ids, context=x)
    torch.testing.assert_close(layer(ids[:, -3:], context=x[:, -1:]), whole[:, -1:])
    torch.testing.assert_close(layer(ids, context=x[:, -4:]), whole[:, -4:])


def test_documents_are_read_as_if_alone():
    layer, ids, x = hashing(), texts(2, 9), states(2, 9)
    numbers = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1], [7, 7, 7, 2, 2, 2, 7, 7, 7]])
    y = layer(ids, context=x, documents=numbers)
    for row, cuts in enumerate(([0, 4, 9], [0, 3, 6, 9])):
        for start, stop in pairwise(cuts):
            alone = layer(ids[row, start:stop], context=x[row, start:stop])
            torch.testing.assert_close(y[row, start:stop], alone)


def test_padding_stands_for_no_token_and_is_not_seen():
    layer, ids, x = hashing(), texts(5), states(5)
    padded = torch.cat([torch.full((3,), -100), ids, torch.full((2,), -100)])
    context = torch.cat([torch.full((3, d), torch.nan), x, torch.full((2, d), torch.inf)])
    mask = torch.tensor(3 * [False] + 5 * [True] + 2 * [False])
    y, selection = layer.forward_with_selection(padded, context=context, mask=mask)
    torch.testing.assert_close(y[mask], layer(ids, context=x))
    assert (y[~mask] == 0).all()
    assert (selection.indices[~mask] == EMPTY).all()
    assert selection.counts.sum() == 5 * 4
    y.square().sum().backward()
    assert all(parameter.grad.to_dense().isfinite().all() for parameter in layer.parameters())
    assert set(layer.values.grad.coalesce().indices()[0].tolist()) == set(selection.indices[mask].flatten().tolist())


def test_canonical_ids_share_rows():
    plain, mapped = hashing(gate=False), hashing(gate=False, vocabulary=[0, 1, 0, 3, 1])
    ids = torch.tensor([2, 4, 3, 0, 1, 2])
    torch.testing.assert_close(mapped(ids), plain(torch.tensor([0, 1, 3, 0, 1, 0])))
    assert mapped.state_dict()["vocabulary"].tolist() == [0, 1, 0, 3, 1]


def test_collisions_by_counting():
    layer, ids = hashing(120, ngram=(1, 2), n_hashes=2), texts(4, 30, high=20)
    found, start = layer.collisions(ids), 0
    for order, n in enumerate((1, 2)):
        padded = [[-1] * (n - 1) + text for text in ids.tolist()]
        n_grams = {tuple(text[i : i + n]) for text in padded for i in range(30)}
        slots = {}
        for text, rows in zip(padded, layer.route(ids).indices.reshape(4, 30, 4).tolist(), strict=True):
            slots |= {tuple(text[i : i + n]): tuple(rows[i][start : start + 2]) for i in range(30)}
        assert found.n_grams[order] == len(n_grams) == len(slots)
        for table in (0, 1):
            loads = Counter(pair[table] for pair in slots.values())
            shared = sum(loads[pair[table]] > 1 for pair in slots.values())
            assert found.shared[order, table] == pytest.approx(shared / len(slots))
        alike = Counter(slots.values())
        assert found.inseparable[order] == pytest.approx(sum(alike[pair] > 1 for pair in slots.values()) / len(slots))
        start += 2


def test_slots_are_loaded_evenly():
    """4,000 trigrams in two tables of about 100 slots: chi-squared, where a fair hash fails with probability 1e-5."""
    rows = torch.cartesian_prod(torch.arange(40), torch.arange(10), torch.arange(10))
    layer, start = hashing(200, ngram=(3,), gate=False), 0
    slots = layer.route(rows).indices[2::3].numpy()  # the last token's: a trigram each
    for size, column in zip(layer.routing.router.sizes, slots.T, strict=True):
        counts = np.bincount(column - start, minlength=size)
        assert len(counts) == size
        assert stats.chisquare(counts).pvalue > 5e-6
        start += size


# ---- product keys ----


@grid(heads=[1, 3], k=[1, 4, 30], seed=range(3), whole=[True, False])
def test_the_k_best_of_all_units(heads, k, seed, whole):
    """Where sums are exact, ties included; else the scores are the k largest to the last bit."""
    n, half, m = 6, 4, 11
    rng = np.random.default_rng(seed)
    draw = partial(rng.integers, -2, 3) if whole else (lambda size: rng.normal(size=size))
    x, keys = draw(size=(m, heads * 2 * half)) * 1.0, draw(size=(heads, 2, n, half)) * 1.0
    selection = ProductKeys(n, k, heads)(x, {"keys": keys})
    for i in range(m):
        for h in range(heads):
            first, second = selection.logits[i, h]
            sums = (first[:, None] + second).ravel()
            query = x[i, 2 * half * h :][: 2 * half]
            np.testing.assert_allclose(first, keys[h, 0] @ query[:half], atol=1e-12)
            np.testing.assert_allclose(second, keys[h, 1] @ query[half:], atol=1e-12)
            units = selection.indices[i, h * k : (h + 1) * k] - h * n**2
            best = np.sort(np.argsort(-sums, kind="stable")[:k])
            if whole:
                assert units.tolist() == best.tolist()
            assert np.sort(sums[units]).tolist() == np.sort(sums[best]).tolist()
            exponentials = np.exp(sums[units] - sums.max())
            np.testing.assert_allclose(selection.weights[i, h * k : (h + 1) * k], exponentials / exponentials.sum())


def test_heads_share_the_table():
    layer, x = products(), states(4)
    y, selection = layer.forward_with_selection(x)
    torch.testing.assert_close(y, selection.dense().reshape(4, 2, 25).sum(1) @ layer.values)


def test_gradients_of_queries_and_keys_match_the_sum_over_all_units():
    layer, x = products().double(), states(4).double().requires_grad_()
    selection = layer.route(x)
    first, second = selection.logits.detach().unbind(2)
    queries = (x @ layer.query_weight.T).reshape(4, 2, 2, -1)
    first, second = (torch.einsum("mhq,hnq->mhn", queries[:, :, i], layer.routing.keys[:, i]) for i in (0, 1))
    sums = (first[..., None] + second[..., None, :]).flatten(1)
    off = selection.dense() == 0
    weights = sums.masked_fill(off, -torch.inf).reshape(4, 2, 25).softmax(-1)
    variables = [x, layer.query_weight, layer.routing.keys]
    wanted = torch.autograd.grad((weights.sum(1) @ layer.values).square().sum(), variables)
    found = torch.autograd.grad(layer(x).square().sum(), variables)
    torch.testing.assert_close(found, wanted)


def test_batch_norm_sees_no_padding():
    layer, x = products(batch_norm=True).train(), states(8)
    mask = torch.tensor([True, False, True, True, True, False, True, True])
    padded = x.masked_fill(~mask[:, None], torch.nan)
    y, selection = layer.forward_with_selection(padded, mask=mask)
    after = layer.norm.running_mean.clone()
    layer.norm.reset_running_stats()
    torch.testing.assert_close(y[mask], layer(x[mask]))
    torch.testing.assert_close(after, layer.norm.running_mean)
    assert (y[~mask] == 0).all()
    assert RoutingStatistics.of(selection).n_inputs == 6
    layer.eval()
    torch.testing.assert_close(layer(padded, mask=mask)[mask], layer(x[mask]))


# ---- both ----


@grid(name=list(BOTH), device=DEVICES)
def test_sparse_gradients_are_the_dense_ones_of_touched_rows(name, device):
    grads = {}
    for sparse in (True, False):
        layer, x, others = BOTH[name](sparse=sparse)
        layer, x = layer.to(device), x.to(device)
        y, selection = layer.forward_with_selection(x, **{key: one.to(device) for key, one in others.items()})
        y.square().sum().backward()
        grads[sparse] = {key: one.grad for key, one in layer.named_parameters()}
    touched = grads[True]["table.weight"].coalesce().indices()[0]
    assert torch.equal(touched, (selection.indices % len(layer.values)).unique())
    for key, wanted in grads[False].items():
        torch.testing.assert_close(grads[True][key].to_dense(), wanted)


@grid(name=list(BOTH), device=DEVICES)
def test_sparse_adam_moves_the_rows_that_were_read(name, device):
    layer, x, others = BOTH[name]()
    layer, x = layer.to(device), x.to(device)
    others = {key: one.to(device) for key, one in others.items()}
    optimizer, before = torch.optim.SparseAdam([layer.values]), layer.values.detach().clone()
    for _ in range(3):
        loss = (layer(x, **others) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    moved = (layer.values != before).any(1).nonzero()[:, 0]
    assert torch.equal(moved, (layer.route(x).indices % len(layer.values)).unique())
    assert (layer(x, **others) - 1).square().sum() < loss


@grid(name=list(BOTH), device=DEVICES)
def test_a_device_computes_as_the_cpu_does(name, device):
    layer, x, others = BOTH[name]()
    wanted, chosen = layer.forward_with_selection(x, **others)
    own = {key: one.to(device) for key, one in others.items()}
    found, selection = layer.to(device).forward_with_selection(x.to(device), **own)
    assert torch.equal(selection.indices.cpu(), chosen.indices)
    torch.testing.assert_close(found.cpu(), wanted)


@pytest.mark.grid
@grid(name=list(BOTH))
def test_compiled_gradients_stay_sparse(name):
    layer, x, others = BOTH[name]()
    y = layer(x, **others)
    wanted = torch.autograd.grad(y.square().sum(), layer.values)[0].to_dense()
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(x, **others)
    torch.testing.assert_close(compiled, y)
    found = torch.autograd.grad(compiled.square().sum(), layer.values)[0]
    assert found.is_sparse
    torch.testing.assert_close(found.to_dense(), wanted)


class Gated(torch.nn.Module):
    """The memory with states and ids as positional arguments, which torch.export names in its shapes."""

    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    def forward(self, x, context=None):
        return self.memory(x) if context is None else self.memory(x, context=context)


@pytest.mark.grid
@pytest.mark.parametrize("name", BOTH)
def test_exported_for_batches_of_any_size(name):
    layer, x, others = BOTH[name]()
    given, batch = (x, *others.values()), torch.export.Dim("batch", min=2, max=4096)
    shapes = {name: {0: batch} for name in ["x", "context"][: len(given)]}
    program = torch.export.export(Gated(layer).eval(), given, dynamic_shapes=shapes).module()
    for m in (3, 2, 5, 300):
        wide = [one.repeat(100, *(1 for _ in one.shape[1:]))[:m] for one in given]
        torch.testing.assert_close(program(*wide), Gated(layer)(*wide))


@grid(name=list(BOTH))
def test_a_memory_begins_as_nothing_and_its_load_is_collected(name):
    layer, x, others = BOTH[name]()
    layer.reset_parameters(seeded(3))
    with routing_losses(layer) as losses:
        assert (layer(x, **others) == 0).all()
    assert losses.total == 0
    assert losses.statistics[""].n_inputs == 24
    assert losses.statistics[""].n_missed == 0


def test_operations_by_counting():
    """Two for each number of a row that is read; products with both halves' keys; one comparison for each score."""
    hashed, keyed = hashing(gate=False), products(n_heads=3, d_query=4)
    assert hashed.flops(7).active == 7 * 2 * 4 * d
    assert hashed.flops().dense == 2 * len(hashed.values) * d
    assert keyed.flops().active == 2 * 3 * 3 * d
    projection, scores, comparisons, pairs = 2 * 12 * d, 3 * 2 * 5 * 2 * 2, 3 * 2 * 5, 3 * 2 * 9
    assert keyed.flops().routing == projection + scores + comparisons + pairs


def test_one_token_is_normalised_out_of_training_and_none_in_it():
    layer, x = products(batch_norm=True), states(1)
    assert layer.train()(x[:0]).shape == (0, d)
    assert layer.norm.running_var.isfinite().all()
    torch.testing.assert_close(layer.eval()(x), layer(torch.cat([x, -x]))[:1])
