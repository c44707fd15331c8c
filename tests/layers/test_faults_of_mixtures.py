"""Faults that mixtures of experts elsewhere have had (docs/mixture_faults.toml), where no other test shows them."""

from __future__ import annotations

import pytest
import torch
from expert_layers import experts, inputs, layer, n
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from sparsact.layers import routing_losses


@pytest.mark.parametrize("ties", [False, True])
def test_a_recomputed_layer_chooses_the_same_experts(ties):
    """With jitter, and with a gate whose logits are all equal; a run reads exactly the experts that have a gradient."""
    gradients = []
    for recomputed in (False, True):
        moe, x = layer(capacity_factor=None, n_active=1, jitter=0.9), inputs(9).requires_grad_()
        if ties:
            nn.init.zeros_(moe.routing.gate)
        torch.manual_seed(3)
        with routing_losses(moe) as losses:
            y = checkpoint(moe, x, use_reentrant=False) if recomputed else moe(x)
        torch.manual_seed(8)  # jitter of a second run that started here would be another
        (y.square().sum() + losses.total).backward()
        (selection,) = losses.selections[""]
        read = moe.down_weight.grad.abs().amax((1, 2)) > 0
        assert torch.equal(read, selection.counts > 0)
        assert ties == (int(read.sum()) == 1)
        gradients.append([x.grad, *(parameter.grad for parameter in moe.parameters())])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=1e-13)


class Loop(nn.Module):
    """Each expert a module of its own, which runs if it has tokens."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(n, experts, dtype=torch.float64)
        self.experts = nn.ModuleList(nn.Linear(n, n, dtype=torch.float64) for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(1).max(1)
        y = torch.zeros_like(x)
        for number in chosen.unique().tolist():
            y[chosen == number] = self.experts[number](x[chosen == number]) * weights[chosen == number, None]
        return y


def test_experts_without_tokens_do_not_stop_data_parallel_training(tmp_path):
    """One token has one expert; a loop over modules, by which torch shows the fault, is refused at its second step."""
    init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        moe = layer(n_active=1, capacity_factor=None, load_balance=0, z_loss=0)
        wrapped = DistributedDataParallel(moe)
        for step in range(3):
            wrapped(inputs(1, seed=step)).square().sum().backward()
        idle = moe.down_weight.grad.abs().amax((1, 2)) == 0
        assert idle.any()
        looped = DistributedDataParallel(Loop())
        looped(inputs(1)).square().sum().backward()
        with pytest.raises(RuntimeError, match="finished reduction"):
            looped(inputs(1)).square().sum().backward()
    finally:
        destroy_process_group()


def test_dropped_tokens_keep_their_shared_experts():
    moe, x = layer("switch", capacity_factor=0.3, n_shared=2), inputs(13)
    y, selection = moe.forward_with_selection(x)
    dropped = selection.dropped
    assert 0 < int(dropped.sum()) < 13
    u, v = (x @ moe.shared_up).chunk(2, 1)
    shared = (F.silu(u) * v) @ moe.shared_down
    torch.testing.assert_close(y[dropped], shared[dropped])
    assert not torch.isclose(y[~dropped], shared[~dropped]).all(1).any()
