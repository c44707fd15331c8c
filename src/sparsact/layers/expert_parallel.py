"""Experts spread over the processes of torch.distributed: tokens go to them and come back by all-to-all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn

from sparsact.layers.expert_outputs import experts_of
from sparsact.layers.gather import gather_sum, scatter_outer
from sparsact.layers.mixture import MixtureOfExperts
from sparsact.routing.selection import EMPTY, Selection

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

SHARDED: Final = ("up_weight", "up_bias", "down_weight", "down_bias")


def shard_experts(model: nn.Module, mesh: DeviceMesh) -> int:
    """Divide the experts of every :class:`MixtureOfExperts` among processes, in place.

    The parameters of the experts become tensors of :mod:`torch.distributed.tensor` that are split by expert; routers,
    shared experts and the rest of the model stay whole on every process. A forward pass sends each token to the
    processes of its experts and brings the outputs back.

    Parameters
    ----------
    model : torch.nn.Module
        Model with the same parameters on every process, from one seed or loaded.
    mesh : DeviceMesh
        A mesh of one dimension, from ``torch.distributed.device_mesh.init_device_mesh("cpu", (n_processes,))``.

    Returns
    -------
    n_sharded : int
        Number of layers.

    Raises
    ------
    ValueError
        If the model has no such layer, or if the processes do not divide the experts.

    Notes
    -----
    Gradients belong to the mean of all processes' losses: experts' gradients are divided by the number of processes,
    as ``DistributedDataParallel`` does with the other parameters; it leaves the experts alone. A process's batch is a
    group of its own for capacities, as with ``group_size=``, and for balancing losses without ``group=``.
    All processes must call the model equally often, with empty batches if need be. A checkpoint by
    :mod:`torch.distributed.checkpoint` loads on another number of processes, and
    ``get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))`` is that of one process.
    Each pass waits for the device once, to know how many tokens to send. Optimizers that update many tensors at once
    (``fused=True``; ``foreach``, the default on CUDA) take no mixture of whole and split tensors: give the experts a
    parameter group of their own. Clip gradients by :func:`clip_gradients`.

    Examples
    --------
    >>> shard_experts(nn.Linear(2, 3), None)
    Traceback (most recent call last):
        ...
    ValueError: Linear has no MixtureOfExperts; build it with sparsact.layers.MixtureOfExperts.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, MixtureOfExperts)}
    if not layers:
        raise ValueError(
            f"{type(model).__name__} has no MixtureOfExperts; build it with sparsact.layers.MixtureOfExperts."
        )
    for name, layer in layers.items():
        if layer.n_experts % mesh.size():
            raise ValueError(
                f"layer {name!r} has {layer.n_experts} experts; choose a multiple of the {mesh.size()} processes."
            )
    ignored = {f"{name}.{each}" for name, layer in layers.items() for each in _shard(layer, mesh)}
    known: Any = getattr(model, "_ddp_params_and_buffers_to_ignore", [])
    names: Any = [*known, *ignored, *(each.removeprefix(".") for each in ignored)]  # of a layer itself, it takes both
    model._ddp_params_and_buffers_to_ignore = names  # where DistributedDataParallel looks for them
    return len(layers)


@torch.no_grad()
def clip_gradients(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients so that their common norm is at most ``max_norm``, as torch's ``clip_grad_norm_``.

    Where parameters are split among processes, the norm is that of the whole ones: every process scales alike. Sparse
    gradients, as of memories, are clipped too, which some versions of torch refuse.

    Parameters
    ----------
    model : torch.nn.Module
        The model after the backward pass, on every process.
    max_norm : float
        Positive.

    Returns
    -------
    norm : Tensor
        Norm before the scaling.

    Examples
    --------
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> layer(torch.tensor([3.0, 4.0])).sum().backward()
    >>> clip_gradients(layer, 1.0), layer.weight.grad
    (tensor(5.), tensor([[0.6000, 0.8000]]))
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module; got {type(model).__name__}: pass the model itself.")
    if not max_norm > 0:
        raise ValueError(f"`max_norm` must be positive; got {max_norm!r}.")
    given: list[Any] = [parameter for parameter in model.parameters() if parameter.grad is not None]
    for parameter in given:
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()  # rows that several inputs read are one
    gradients: list[Any] = [one.grad.values() if one.grad.is_sparse else one.grad for one in given]
    if not gradients:
        raise ValueError(f"{type(model).__name__} has no gradients; clip them after the backward pass.")
    norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
    norm: Tensor = torch.linalg.vector_norm(
        torch.stack([each.full_tensor() if is_split(each) else each for each in norms])
    )
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        (gradient.to_local() if is_split(gradient) else gradient).mul_(scale)
    return norm


def is_split(tensor: Tensor) -> bool:
    """Whether a tensor is one of :mod:`torch.distributed.tensor`."""
    return hasattr(tensor, "full_tensor")


def _shard(layer: MixtureOfExperts, mesh: DeviceMesh) -> list[str]:
    """Split a layer's experts; the names of their parameters."""
    from torch.distributed.tensor import DTensor, Shard

    names = [name for name in SHARDED if getattr(layer, name) is not None]
    for name in names:
        whole = getattr(layer, name)
        part = whole.detach().chunk(mesh.size())[mesh.get_local_rank()].clone()
        split = DTensor.from_local(part, mesh, [Shard(0)], run_check=False)
        setattr(layer, name, nn.Parameter(split, requires_grad=whole.requires_grad))
    layer.exchange = Exchange(mesh)
    return names


class Exchange:
    """Outputs of experts that lie on several processes."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh

    def __call__(self, layer: MixtureOfExperts, rows: Tensor, selection: Selection) -> Tensor:
        """Sums (m, d_out) of the chosen experts' outputs for ``rows`` (m, d), wherever they are."""
        group, n = self.mesh.get_group(), self.mesh.size()
        places = selection.indices.reshape(-1)
        order = torch.argsort(places, stable=True)
        counts = torch.bincount(places + 1, minlength=layer.n_experts + 1)  # empty places first
        sent = order[counts[0] :]
        mine = counts[1:].reshape(n, -1)  # tokens for each expert of each process
        arriving = torch.empty_like(mine)
        torch.distributed.all_to_all_single(arriving, mine.contiguous(), group=group)
        out, back = arriving.sum(1).tolist(), mine.sum(1).tolist()
        tokens = sent // max(1, selection.indices.shape[1])
        slots = torch.full_like(places, EMPTY).scatter(0, sent, torch.arange(len(sent), device=sent.device))
        slots = slots.reshape(selection.indices.shape)
        weights = selection.weights.to(rows.dtype)
        leaving = scatter_outer(torch.ones_like(weights), rows, slots, len(tokens))
        arrived = _moved(leaving, out, back, group)
        experts = torch.arange(arriving.shape[1], device=sent.device).repeat(n).repeat_interleave(arriving.reshape(-1))
        outputs = _moved(self._outputs(layer, arrived, experts[:, None]), back, out, group)
        y: Tensor = gather_sum(weights, outputs, slots)
        return y

    def _outputs(self, layer: MixtureOfExperts, rows: Tensor, experts: Tensor) -> Tensor:
        """Outputs (p, d_out) of the experts (p, 1) that lie here."""
        up, down = self._local(layer.up_weight), self._local(layer.down_weight)
        up_bias, down_bias = (None if one is None else self._local(one) for one in (layer.up_bias, layer.down_bias))
        ones = torch.ones_like(experts, dtype=rows.dtype)
        y = experts_of(rows, experts, ones, up, down, layer._activated, up_bias)
        return y if down_bias is None else y + gather_sum(ones, down_bias.to(rows.dtype), experts)

    def _local(self, parameter: Any) -> Tensor:
        """Part of this process, whose gradient is one of a mean over processes."""
        part: Tensor = parameter.to_local()
        if part.requires_grad:
            part.register_hook(lambda gradient: gradient / self.mesh.size())  # type: ignore[no-untyped-call] # torch's
        return part


def _moved(rows: Tensor, out: list[int], back: list[int], group: ProcessGroup) -> Tensor:
    """Rows (sum(out), d) that arrive, ``out[r]`` from process r, where ``back[r]`` of ours go; gradients go back."""
    from torch.distributed.nn.functional import all_to_all_single  # late: it loads much, and not every torch has it

    arrived = rows.new_empty(sum(out), *rows.shape[1:])
    moved: Tensor = all_to_all_single(arrived, rows.contiguous(), out, back, group=group)  # type: ignore[no-untyped-call]
    return moved
