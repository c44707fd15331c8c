"""What several processes compute with a mixture of experts: ``python parallel_layers.py processes folder what``.

Each process sees its part of a batch, and writes what it found to ``<folder>/<what>-<rank>.pt``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import data_parallel
import torch
from expert_layers import NAMES, experts, hidden, n, seeded
from torch import nn

from sparsact.layers import MixtureOfExperts, clip_gradients, routing_losses, shard_experts, update_biases

M = 24  # tokens of a batch
FSDP = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)  # before, gloo may not scatter what it reduces
PLAIN = {"capacity_factor": None, "load_balance": 0, "z_loss": 0}
CASES = {
    "plain": {"router": "top_k", "n_active": 2, "bias": True, "n_shared": 1, **PLAIN},
    "losses": {"router": "top_k", "n_active": 2, "capacity_factor": 0.7, "load_balance": 5.0},
    "sigmoid": {"router": "sigmoid", "n_active": 2, "bias_rate": 0.25},
    "expert_choice": {"router": "expert_choice", **NAMES["expert_choice"]},
    "hash": {"router": "random_hash", "n_active": 3, "bias": True},
}


def model(case, seed=5):
    torch.manual_seed(seed)
    made = {"n_experts": experts, "dtype": torch.float64, "generator": seeded(seed)} | CASES[case]
    return nn.Sequential(nn.Linear(n, n, dtype=torch.float64), MixtureOfExperts(n, hidden, **made))


def batch(step):
    x = torch.randn(M, n, generator=seeded(100 + step), dtype=torch.float64)
    return x, x.flip(-1).sin()


def loss_of(whole, x, y):
    """Mean squared error of a part, with the losses of the router, and outputs."""
    with routing_losses(whole) as losses:
        out = whole(x)
    return (out - y).square().mean() + losses.total, out


def full(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def gradients(whole):
    return {name.removeprefix("module."): full(p.grad).clone() for name, p in whole.named_parameters()}


POOLED = {  # routers whose losses count the tokens of all processes
    "top_k": {"n_active": 2, "load_balance": 5.0, "z_loss": 2.0},
    "sigmoid": {"n_active": 2, "load_balance": 5.0, "bias_rate": 0.25},
    "switch": {"load_balance": 5.0, "capacity_factor": None},
}


def pooled_layer(router):
    made = {"n_experts": experts, "dtype": torch.float64, "generator": seeded(5)}
    return MixtureOfExperts(n, hidden, router=router, **made, **POOLED[router])


def pooled_batch():
    """Tokens, and a mask that leaves each process another number of them."""
    return batch(7)[0] + 0.7, torch.arange(M) ** 2 % 11 < torch.arange(M) // 3


def pooled(layer, x, mask, group=None, recomputed=None):
    """Loss of two runs of a layer, and its gradients."""
    with routing_losses(layer, weight=0.5, group=group) as losses:
        y = recomputed(layer, x, mask=mask, use_reentrant=False) if recomputed else layer(x, mask=mask)
        y = x + y + layer(1 - x, mask=mask)
    loss = y.square().mean() + losses.total
    assert torch.equal(losses.total, losses.total)
    loss.backward()
    return loss.detach(), gradients(layer)


def steps(whole, optimizer, numbers, part=lambda rows: rows):
    for number in numbers:
        x, y = map(part, batch(number))
        optimizer.zero_grad()
        loss_of(whole, x, y)[0].backward()
        optimizer.step()
        if "sigmoid" in repr(whole).lower():
            update_biases(whole)


def saved(whole, optimizer):
    """Model and optimizer for torch.distributed.checkpoint."""
    from torch.distributed.checkpoint.state_dict import get_state_dict

    states = get_state_dict(whole, optimizer)
    return dict(zip(("model", "optimizer"), states, strict=True))


def restore(whole, optimizer, folder):
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import set_state_dict

    state = saved(whole, optimizer)
    checkpoint.load(state, checkpoint_id=folder)
    set_state_dict(whole, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


def accelerated(whole, x, y, rank, processes):
    """Outputs and gradients where accelerate prepares the model; None without it."""
    try:
        from accelerate import Accelerator
    except ImportError:
        return None
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
    os.environ.update({name: str(number) for name, number in numbers.items()}, MASTER_ADDR="127.0.0.1")
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(whole)
    loss, out = loss_of(prepared, x, y)
    accelerator.backward(loss)
    assert accelerator.num_processes == processes
    return out.detach(), gradients(prepared)


def main(rank, processes, folder, what):
    from torch.distributed import checkpoint, device_mesh, init_process_group
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.checkpoint import checkpoint as recomputed

    torch.set_num_threads(1)
    init_process_group("gloo", init_method=f"file://{folder}/{what}-store", rank=rank, world_size=processes)
    mesh = device_mesh.init_device_mesh("cpu", (processes,))

    def part(rows):
        return rows.chunk(processes)[rank]

    def parallel(case, seed=5):
        made = model(case, seed)
        shard_experts(made, mesh)
        return DistributedDataParallel(made)

    found = {}
    if what == "compute":
        for case in CASES:
            for kind in ("experts", "data", *(["fsdp"] if FSDP else [])):
                made = parallel(case) if kind == "experts" else model(case)
                made = DistributedDataParallel(made) if kind == "data" else made
                if kind == "fsdp":
                    fully_shard(made[1], mesh=mesh)
                    fully_shard(made, mesh=mesh)
                loss, out = loss_of(made, *map(part, batch(0)))
                loss.backward()
                found[case, kind] = out.detach(), gradients(made)
                norm = clip_gradients(made, 0.01)
                found[case, kind, "clipped"] = norm, gradients(made)
        again = parallel("plain")
        x, y = map(part, batch(0))
        with torch.autocast("cpu", torch.bfloat16):
            found["narrow"] = parallel("plain").float()(x.float()).detach()
        out = recomputed(again, x.requires_grad_(), use_reentrant=False)
        (out - y).square().mean().backward()
        found["plain", "recomputed"] = out.detach(), gradients(again)
        found["losses", "accelerate"] = accelerated(model("losses"), *map(part, batch(0)), rank, processes)
        for router in POOLED:
            x, mask = map(part, pooled_batch())
            for kind in ("data", "experts", "recomputed", *(["fsdp"] if FSDP else [])):
                made = pooled_layer(router)
                if kind == "experts":
                    shard_experts(made, mesh)
                ready = fully_shard(made, mesh=mesh) if kind == "fsdp" else DistributedDataParallel(made)
                again = recomputed if kind == "recomputed" else None
                loss, grads = pooled(ready, x, mask, torch.distributed.group.WORLD, again)
                torch.distributed.all_reduce(loss)
                if router == "sigmoid":
                    update_biases(made)
                found["pooled", router, kind] = loss / processes, grads, dict(made.routing.named_buffers())
        found["alone"] = data_parallel.computed(rank, processes, mesh) if processes == 2 else {}
        whole = DistributedDataParallel(model("sigmoid"))
        for number in range(2):  # two parts of a step
            loss_of(whole, *map(part, batch(number)))[0].backward()
        update_biases(whole)
        found["bias"] = whole.module[1].routing.bias
        whole = parallel("losses")
        optimizer = torch.optim.Adam(whole.parameters(), 0.01, foreach=False)
        steps(whole, optimizer, range(3), part)
        checkpoint.save(saved(whole, optimizer), checkpoint_id=f"{folder}/checkpoint")
        steps(whole, optimizer, range(3, 6), part)
    else:
        whole = parallel("losses", seed=8)
        optimizer = torch.optim.Adam(whole.parameters(), 0.01, foreach=False)
        restore(whole, optimizer, f"{folder}/checkpoint")
        steps(whole, optimizer, range(3, 6), part)
    found["trained"] = {key.removeprefix("module."): full(value) for key, value in whole.state_dict().items()}
    torch.save(found, Path(folder) / f"{what}-{rank}.pt")
    torch.distributed.destroy_process_group()


def imported():
    """All that :func:`main` imports, once for all processes."""

    with suppress(ImportError):
        import accelerate  # noqa: F401


if __name__ == "__main__":
    imported()
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    number, folder, what = int(sys.argv[1]), *sys.argv[2:]
    ranks = [context.Process(target=main, args=(rank, number, folder, what)) for rank in range(number)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(any(process.exitcode for process in ranks))
