"""What processes compute by DistributedDataParallel with memories, and with mixtures, one without work."""

from __future__ import annotations

import torch
from expert_layers import NAMES, inputs, layer
from memory_layers import BOTH
from torch.nn.parallel import DistributedDataParallel

from sparsact.layers import routing_losses, shard_experts
from sparsact.layers.expert_parallel import SHARDED

M = 10  # tokens of a batch of a mixture
KINDS = ("one expert", "masked", "empty")  # what the last tokens are
RATE = 0.1
POOLED = {"top_k": {"n_active": 2}, "sigmoid": {}, "switch": {"z_loss": 0.5}}


def mixture(name, kind):
    others = {"top_k": {"capacity_factor": None}, "switch": {"capacity_factor": None}}
    own = {"expert_choice": {"group_size": M // 2}} | others
    return layer(name, bias=kind != "masked", n_shared=1, **own.get(name, {}))


def starving(kind):
    """Tokens, and a mask: the second half goes to one expert, is padding, or is not there."""
    x, real = inputs(M) + 0.3, torch.ones(M, dtype=torch.bool)
    x[M // 2 :] = torch.nan if kind == "masked" else x[-1]
    real[M // 2 :] = kind != "masked"
    return (x[: M // 2], real[: M // 2]) if kind == "empty" else (x, real)


def loss_of(whole, x, real, group=None, scale=1.0):
    """A sum over tokens, with the losses of the router."""
    with routing_losses(whole, group=group, weight=0.5) as losses:
        y = whole(x, mask=real)
    return scale * y.square().sum() / 7 + losses.total


def texts():
    """Six texts of five tokens with padding, for two parts of a step; each process has half the texts of either."""
    return inputs(6, 5) + 0.3, torch.arange(5) < torch.tensor([[5], [1], [4], [0], [2], [5]])


PARTS = ([0, 1, 4, 5], [2, 3])  # texts of each part


def accumulated(name, wrap, rank=0, processes=1, group=None):
    """Gradient at the gate after two parts of a step that balance their load together and within texts."""
    whole = layer(name, load_balance=2.0, sequence_balance=0.5, **{"capacity_factor": None} | POOLED[name])
    ready, (x, real), losses = wrap(whole), texts(), None
    for part in PARTS:
        mine = part[rank * len(part) // processes : (rank + 1) * len(part) // processes]
        with routing_losses(ready, weight=1.0, group=group, earlier=losses) as losses:
            y = ready(x[mine], mask=real[mine])
        (losses.total * real[part].sum() / real.sum() + 0 * y.sum()).backward()
    return whole.routing.gate.grad.clone()


def reading(name, sparse):
    """A memory, three texts (one for the first process), its mask, and the states that gate it."""
    memory, x, others = BOTH[name](sparse=sparse, dtype=torch.float64)
    x, others = (x if name == "n-grams" else x.double()), {key: one.double() for key, one in others.items()}
    real = torch.arange(x.shape[1]) > torch.tensor([[0], [3], [-1]])
    return memory, x, real, others


def step(memory, call, x, real, others, scale=1.0):
    """Gradients, and the table after a step of its optimizer."""
    (scale * call(x, mask=real, **others).square().sum()).backward()
    kind = torch.optim.SparseAdam if memory.sparse else torch.optim.Adam
    grads = {name: one.grad.to_dense().clone() for name, one in memory.named_parameters()}
    assert memory.values.grad.is_sparse == memory.sparse
    kind([memory.values], RATE).step()
    return grads, memory.values.detach()


def computed(rank, processes, mesh):
    """What process ``rank`` finds."""
    found, group = {}, torch.distributed.group.WORLD
    for name in BOTH:
        for sparse in (True, False):
            for masked in (False, True):  # all of the first process's tokens
                memory, x, real, others = reading(name, sparse)
                real[0] &= not masked
                mine = slice(0, 1) if rank == 0 else slice(1 + 2 * (rank - 1), 1 + 2 * rank)
                part = [one[mine] for one in (x, real)]
                its = {key: one[mine] for key, one in others.items()}
                found[name, sparse, masked] = step(memory, DistributedDataParallel(memory), *part, its, processes)
    for name, spread in [*((name, False) for name in NAMES), ("top_k", True), ("sigmoid", True)]:
        for kind in KINDS:
            made, half = mixture(name, kind), M // 2
            if spread:
                shard_experts(made, mesh)
            ready, part = DistributedDataParallel(made), slice(half * rank, half * (rank + 1))
            x, real = (one[part] for one in starving(kind))
            loss_of(ready, x, real, group, processes).backward()
            gradients = {key: one.grad for key, one in made.named_parameters()}
            whole = {key: one.full_tensor() if key in SHARDED and spread else one for key, one in gradients.items()}
            found[name, kind, spread] = {key: one.clone() for key, one in whole.items()}
            loss_of(ready, x, real, group)  # a second step finds no parameter without gradient
    for name in POOLED:
        found["accumulated", name] = accumulated(name, DistributedDataParallel, rank, processes, group)
    return found
