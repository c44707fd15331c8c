"""Switch: experts, room, and the losses that keep them busy."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from routed import M, inputs, state_of
from scipy.special import logsumexp, softmax

from sparsact import routing
from sparsact.routing import EMPTY


@given(
    m=st.integers(0, 40),
    factor=st.sampled_from([0.1, 0.5, 1.0, 1.25, 3.0, None]),
    training=st.booleans(),
    tensors=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_by_brute_force(m, factor, training, tensors, seed):
    factors = {"capacity_factor" if training else "eval_capacity_factor": factor}
    router = routing.Switch(3, **{"capacity_factor": None, **factors})
    x, gate = inputs(m, seed=seed % 1000), state_of(router, seed=seed)["gate"]
    as_kind = torch.tensor if tensors else np.asarray
    chosen = router(as_kind(x), {"gate": as_kind(gate)}, training=training)
    taken, sent = [0, 0, 0], [0, 0, 0]
    room = np.inf if factor is None else ceil(factor * m / 3)
    for i, row in enumerate(x):
        probabilities = softmax(gate @ row)
        expert = int(np.argmax(gate @ row))
        sent[expert] += 1
        late = taken[expert] >= room
        taken[expert] += not late
        assert chosen.indices[i].tolist() == [EMPTY if late else expert]
        assert bool(chosen.dropped[i]) == late
        assert float(chosen.weights[i, 0]) == pytest.approx(0 if late else probabilities[expert])
    assert chosen.counts.tolist() == sent


def test_capacity_really_drops():
    router = routing.Switch(4, capacity_factor=1.0)
    gate = np.zeros((4, 5))
    gate[2] = 1
    chosen = router(np.ones((8, 5)), {"gate": gate}, training=True)
    assert chosen.indices[:, 0].tolist() == [2, 2] + [EMPTY] * 6
    assert chosen.dropped.tolist() == [False] * 2 + [True] * 6
    assert (chosen.dense()[2:] == 0).all()
    assert chosen.counts.tolist() == [0, 0, 8, 0]
    assert not router(np.ones((8, 5)), {"gate": gate}).dropped.any()


@pytest.mark.parametrize("n_experts", [2, 4, 8])
@pytest.mark.parametrize("as_kind", [np.asarray, torch.tensor])
def test_load_balance_is_one_when_uniform(n_experts, as_kind):
    router = routing.Switch(n_experts)
    chosen = router(as_kind(np.tile(np.eye(n_experts), (3, 1))), {"gate": as_kind(np.eye(n_experts))}, training=True)
    assert len(set(chosen.counts.tolist())) == 1
    assert float(chosen.auxiliary_loss) == pytest.approx(1, rel=1e-15)
    alike = router(as_kind(np.ones((6, 3))), {"gate": as_kind(np.zeros((n_experts, 3)))})
    assert float(alike.auxiliary_loss) == 1.0


def test_losses_by_their_formulas():
    x, gate = inputs(), 2 * state_of(routing.Switch(3))["gate"]
    logits = x @ gate.T
    share = np.bincount(logits.argmax(axis=1), minlength=3) / M
    balance = 3 * (share * softmax(logits, axis=1).mean(axis=0)).sum()
    z = (logsumexp(logits, axis=1) ** 2).mean()
    for weights in ((1.0, 0.0), (0.0, 1.0), (0.01, 0.001)):
        loss = routing.Switch(3, load_balance=weights[0], z_loss=weights[1])(x, {"gate": gate}).auxiliary_loss
        assert float(loss) == pytest.approx(weights[0] * balance + weights[1] * z, rel=1e-12)


def test_gradients():
    router = routing.Switch(3, capacity_factor=0.5, z_loss=0.5)
    gate = torch.tensor(state_of(router)["gate"], requires_grad=True)
    x = torch.tensor(inputs(7), requires_grad=True)

    def answer(gate, x):
        chosen = router.select(x, {"gate": gate}, training=True)
        return chosen.weights, chosen.auxiliary_loss

    assert torch.autograd.gradcheck(answer, (gate, x))
    chosen = router.select(x, {"gate": gate}, training=True)
    assert 0 < chosen.dropped.sum() < 7
    (gradient,) = torch.autograd.grad(chosen.weights.sum(), x)
    assert (gradient[chosen.dropped] == 0).all()
    assert (gradient[~chosen.dropped] != 0).any(dim=1).all()


def test_large_logits_do_not_overflow():
    gate = np.array([[1e4, 0.0], [0.0, 1e4], [-1e4, 0.0]])
    for as_kind in (np.asarray, torch.tensor):
        chosen = routing.Switch(3, z_loss=1.0)(as_kind([[5.0, 1.0], [1.0, 5.0]]), {"gate": gate})
        assert chosen.weights.tolist() == [[1], [1]]
        assert float(chosen.auxiliary_loss) == pytest.approx(1.5 + 5e4**2)


@pytest.mark.parametrize("router", [routing.Switch(3), routing.SoftmaxTopK(3, 2), routing.ExpertChoice(3)], ids=repr)
@pytest.mark.parametrize("tensors", [False, True])
def test_a_mask_of_padding_in_the_state(router, tensors):
    x, gate, mask = inputs(), state_of(router)["gate"], np.arange(M) % 3 != 1
    whole, alone = ({"gate": gate, "mask": mask}, x), ({"gate": gate}, x[mask])
    if tensors:
        whole, alone = (
            ({k: torch.as_tensor(v) for k, v in s.items()}, torch.as_tensor(rows)) for s, rows in (whole, alone)
        )
    found, wanted = (router(rows, state, training=True) for state, rows in (whole, alone))
    np.testing.assert_array_equal(np.asarray(found.indices)[mask], np.asarray(wanted.indices))
    assert (np.asarray(found.indices)[~mask] == EMPTY).all()
    np.testing.assert_allclose(float(found.auxiliary_loss), float(wanted.auxiliary_loss))
    for other in (mask[1:], mask.astype(float)):
        with pytest.raises(ValueError, match=r"`mask` of .* must be bool of shape"):
            router(x, {"gate": gate, "mask": other})


@pytest.mark.parametrize("masked", [False, True])
def test_experts_choose_within_groups(masked):
    """Experts choose as if each group were a batch of its own, the last one shorter."""
    rng = np.random.default_rng(7)
    x, gate = rng.normal(size=(23, 3)), {"gate": rng.normal(size=(4, 3))}
    mask = {"mask": rng.random(23) < 0.7} if masked else {}
    router = routing.ExpertChoice(4, capacity_factor=1.5)
    grouped = routing.ExpertChoice(4, capacity_factor=1.5, group_size=6)
    found = grouped(x, gate | mask)
    for first in range(0, 23, 6):
        some = slice(first, first + 6)
        alone = router(x[some], gate | {name: one[some] for name, one in mask.items()})
        np.testing.assert_array_equal(found.indices[some], alone.indices)
        np.testing.assert_array_equal(found.weights[some], alone.weights)
    of_torch = grouped(*(torch.tensor(x), {name: torch.tensor(one) for name, one in (gate | mask).items()}))
    np.testing.assert_array_equal(of_torch.indices.numpy(), found.indices)
    assert grouped(x[:0], gate).indices.shape == (0, 4)


@pytest.mark.parametrize("priority", ["weight", "arrival"])
def test_switch_is_the_gate_of_one_expert(priority):
    rng = np.random.default_rng(8)
    x, gate = rng.normal(size=(29, 3)), {"gate": rng.normal(size=(4, 3))}
    shared = {"capacity_factor": 0.8, "priority": priority, "group_size": 7}
    one = routing.Switch(4, **shared)(x, gate, training=True)
    other = routing.SoftmaxTopK(4, 1, normalise="all", z_loss=0.0, **shared)(x, gate, training=True)
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.auxiliary_loss == other.auxiliary_loss
    assert one.dropped.any()
    assert not one.dropped.all()
