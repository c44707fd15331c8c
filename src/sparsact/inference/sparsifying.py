"""Make a trained model compute only its active units, show what was chosen, and undo it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import islice
from typing import Final, TypeVar

import torch
from torch import nn

from sparsact.inference.apply import (
    PlannedBlock,
    Replacement,
    apply,
    free_fast_paths,
    restore,
    verified,
    with_sparse_shares,
)
from sparsact.inference.autotune import fastest
from sparsact.inference.batches import Batch, Inputs, batches, tensors_in, uncompiled
from sparsact.inference.block import Block, BlockWeights, checked_blocks, plain
from sparsact.inference.block_profile import BlockProfile, sample_inputs
from sparsact.inference.find_blocks import blocks_or_reason
from sparsact.inference.head import sparse_head, unguard
from sparsact.inference.layer_facts import check_model, check_not_quantized, other_forms, setting
from sparsact.inference.methods import (
    EXACT,
    ApproximationTarget,
    SparsifyOptions,
    certified_replacement,
    exact_replacement,
)
from sparsact.inference.plan import Plan
from sparsact.inference.plan_check import checked
from sparsact.inference.quantizing import quantize
from sparsact.inference.selectors import ActiveInputs
from sparsact.inference.small_activations import calibrated
from sparsact.inference.sparse_linear import MAX_ROWS, GradientNotice, LayerState, SparseLinear
from sparsact.inference.split_experts import join_experts, split_experts
from sparsact.inference.weights import FloatWeights

Model = TypeVar("Model", bound=nn.Module)


def sparsify(
    model: Model,
    method: str = "auto",
    inputs: Inputs | None = None,
    *,
    weights: str = "keep",
    keep_weights: bool = True,
    blocks: Sequence[Block] | None = None,
    copy: bool = False,
    time_limit: float = 20.0,
    density: float | None = None,
    error: float | None = None,
    head: str | None = None,
    k: int | None = None,
) -> Model:
    r"""Let the layers of a model read only the weights of active units.

    A block :math:`V f(W x + b) + c` reads all of W and V, although f(z) = 0 for most units. A single layer
    :math:`V h + c` may read an input h that is mostly 0, for whatever reason. The methods skip:

    - ``"exact"``: columns of V, and in a gated block rows of the up-projection, where the activation is exactly 0;
    - ``"certified"``: also rows of W, if there is one, whose unit an int8 copy *proves* to be off (see
      :class:`~sparsact.inference.certified_screen.Screen`);
    - ``"approximate"``: columns of V where the activation is small, also for GELU and SiLU. It keeps units above a
      threshold or the k largest of each input, whichever is better on held-out inputs, and reports the error there;
    - ``"auto"``: for each block the exact method that is fastest on this machine, or dense.

    Exact methods return what the model returns for every input, up to the order of summation. Layers keep their
    parameters, names and hooks, and ``state_dict`` does not change. If a model stacks its experts in one parameter
    (transformers, :class:`~sparsact.layers.MixtureOfExperts`), each becomes a module with its own parameter: call
    :func:`densify` before you train them. On CUDA, ``"auto"`` and ``"exact"`` apply, by Triton's products. Layers
    compute densely in training mode, while gradients are recorded, after a move to another type of device, for many
    rows at once, and while torch traces, transforms or casts operations.

    Layers detect new weights, new hooks on them or on modules between them, and modules that replace them. They find a
    write to a few numbers that torch does not count (``.data``) some hundred calls late, unless ``model.eval()`` comes
    first. They do not detect a new forward of the model, or new numbers in its code, such as the k of a top-k: call
    :func:`sparsify` again after such a change.

    Parameters
    ----------
    model : nn.Module
        Any model with linear layers; it is changed in place unless ``copy``.
    method : str
    inputs : tensor, mapping, tuple, or iterable of these
        Typical batches, with as many rows each as in service. They serve to find blocks, measure, calibrate and time;
        the first 64 are used.
    weights : {"keep", "int8", "int4"}
        ``"int8"`` also quantises all linear layers, with one scale per output, and their inputs at each call, as
        ``torch.ao.quantization.quantize_dynamic`` does with ``per_channel_dynamic_qconfig``. ``"int4"`` rounds weights
        to 4 bits in groups of 32, and inputs to 8 bits row by row. ``"auto"`` and ``"exact"`` then skip the weights of
        units whose *quantised* activation is 0, for any activation function. :func:`plan_of` reports the error.
    keep_weights : bool
        Whether quantised layers keep their float weights too. Without them a layer takes a quarter or an eighth of its
        memory, ``state_dict`` lacks the weight, and :func:`densify` restores the rounded one. Weights that are tied to
        another module stay.
    blocks : list of Block, optional
        Blocks to change; default: all that :func:`find_blocks` finds, and stacked experts.
    copy : bool
        Leave ``model`` as it is and return a copy, weights included.
    time_limit : float
        Seconds for the timing of ``"auto"``.
    density, error : float, optional
        Target of ``"approximate"``, in (0, 1]; pass one of the two. ``density`` is the largest share of units kept,
        ``error`` the largest relative error of a block's output.
    head : {"top_k"}, optional
        Compute only the outputs of a language model's last layer that can be among the k largest, for calls of up to
        16 rows without labels. They are exact, ties included; the others are -infinity. ``generate`` of transformers
        returns the same tokens. Other uses of logits (log-probabilities) must need only the k largest.
    k : int, optional
        Number of largest outputs; default 50.

    Returns
    -------
    nn.Module
        The model; :func:`plan_of` returns the method of each block, :func:`densify` undoes it.

    Raises
    ------
    ValueError
        If there is no block nor a head, if no block has the exact zeros that a method needs, if inputs are missing or
        hold too few rows, if ``blocks`` belong to another model, or if an option has no effect on the method.
    TypeError
        If the method is no text, a batch no tensor, mapping or tuple, or the model no ``nn.Module`` in Python.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)).eval()
    >>> _ = model[0].bias.data.fill_(-1.0)
    >>> x = torch.randn(20, 8)
    >>> before = model(x[:1]).detach()
    >>> _ = sparsify(model, "exact", x)
    >>> with torch.no_grad():
    ...     print(torch.allclose(model(x[:1]), before, atol=1e-6), plan_of(model).choices[0].method)
    True exact
    """
    options = SparsifyOptions.checked(method, weights, keep_weights, time_limit, density, error, head, k)
    check_model(model)
    if weights != "keep":
        check_not_quantized(model, weights)
    if inputs is None:
        raise ValueError("`inputs` are needed to find blocks and time them: pass a batch, sparsify(model, inputs=x).")
    if copy:
        with torch.inference_mode(False):  # parameters made within it count no writes
            model = deepcopy(model)
    densify(model)
    shown = list(islice(batches(inputs), BATCHES))
    with being_sparsified(model):
        plan = _sparsified(model, options, shown, blocks)
    object.__setattr__(model, PLAN, plan)
    return model


@contextmanager
def being_sparsified(model: nn.Module) -> Iterator[None]:
    """The model with its experts split and without compiled code; dense again if an error is raised."""
    with uncompiled(), split_experts(model):
        try:
            yield
        except BaseException:
            densify(model)
            raise
        notice = GradientNotice()
        for module in model.modules():
            if isinstance(module, SparseLinear):
                module._sparse.notice = notice


def _sparsified(
    model: nn.Module, options: SparsifyOptions, shown: Sequence[Batch], blocks: Sequence[Block] | None
) -> Plan:
    """Replace the layers of the model, and return its plan."""
    found = checked_blocks(model, blocks) if blocks is not None else _found(model, options, shown[0])
    samples = sample_inputs(model, found, shown)
    silent = [block.name for block in found if not sum(samples[block].rows_per_call)]
    if silent:
        raise ValueError(
            f"`inputs` must hold inputs of every block; {', '.join(silent)} got none: pass batches with rows."
        )
    profiles = [BlockProfile.of(model, block, samples[block]) for block in found]
    method, time_limit = options.method, options.time_limit
    if options.weights != "keep":
        return quantize(model, profiles, shown, options)
    if method == "auto":
        planned = fastest(profiles, time_limit) if profiles else []
    else:
        planned = [requested_replacement(profile, method, options.target) for profile in profiles]
        if not any(replacement.layers for replacement, _ in planned):
            reasons = "; ".join(sorted({plan.reason for _, plan in planned}))
            raise ValueError(f'method="{method}" applies to none of the {len(found)} blocks of this model: {reasons}.')
    left_dense = tuple(other_forms(model))
    planned = apply(model, planned)
    if method in EXACT:
        largest = max(shown, key=lambda batch: sum(tensor.numel() for tensor in tensors_in(batch)))
        planned = verified(model, found, planned, largest)
    head = None if options.k is None else sparse_head(model, options.k, shown)
    whole = None
    if method == "auto":
        planned, whole = checked(model, planned, shown, time_limit / 8)
    plans = with_sparse_shares(model, [block.down for block in found], planned, shown)
    return Plan(plans, whole, left_dense, head=head, timed_on=setting(model.parameters()))


def _found(model: nn.Module, options: SparsifyOptions, batch: Batch) -> list[Block]:
    """The blocks of a model; none where the head alone is to be sparse."""
    found, why_none = blocks_or_reason(model, batch)
    if not found and (options.k is None or options.method != "auto"):
        raise ValueError(why_none)
    return found


def requested_replacement(
    profile: BlockProfile, method: str, target: ApproximationTarget | None = None
) -> PlannedBlock:
    """The block under the method that was asked for, with the target of an approximation; or dense with the reason."""
    model, block = profile.model, profile.block
    if method == "certified" and block.up is None:
        method = "exact"  # nothing before the layer is to be proved off
    if obstacle := profile.obstacle(method):
        return profile.dense(obstacle)
    if target is not None:
        rule, quality = calibrated(BlockWeights.of(model, block), plain(profile.sample), target)
        masked = Replacement({block.down: LayerState(FloatWeights, ActiveInputs(rule))})
        return profile.planned(masked, method, f"requested: keeps {rule}", quality, max_rows=MAX_ROWS)
    if method == "exact":
        found = exact_replacement(model, block, device=profile.device)
    else:
        found = certified_replacement(model, block, profile.sample.float())
    return profile.planned(found, method, max_rows=MAX_ROWS)


BATCHES: Final = 64  # most batches of the inputs that are used
PLAN: Final = "_sparsact_plan"


def densify(model: Model) -> Model:
    """Undo :func:`sparsify`: layers become ``nn.Linear`` again, with their present parameters.

    Parameters
    ----------
    model : nn.Module
        Model to change in place; a model that was never sparsified stays as it is.

    Returns
    -------
    model : nn.Module
        The same object.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> _ = sparsify(model, "exact", torch.randn(20, 8))
    >>> type(model[2]).__name__, type(densify(model)[2]).__name__
    ('SparseLinear', 'Linear')
    """
    for module in model.modules():
        restore(module)
        unguard(module)
    join_experts(model)
    free_fast_paths(model)
    if hasattr(model, PLAN):
        object.__delattr__(model, PLAN)
    return model


def plan_of(model: nn.Module) -> Plan:
    """Return the method that :func:`sparsify` chose for each block.

    Parameters
    ----------
    model : nn.Module
        Model that :func:`sparsify` returned.

    Returns
    -------
    plan : Plan
        A plan for each block, with its reason and times.

    Raises
    ------
    ValueError
        If the model was not sparsified, or was made dense again.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> plan = plan_of(sparsify(model, "exact", torch.randn(20, 8)))
    >>> [(choice.method, 0 < choice.density < 1, 1 < choice.bound < 2) for choice in plan.choices]
    [('exact', True, True)]
    """
    plan = getattr(model, PLAN, None)
    if not isinstance(plan, Plan):
        raise ValueError("this model has no plan: pass a model returned by sparsact.sparsify.")
    return plan
