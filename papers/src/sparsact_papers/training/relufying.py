"""Replace the activations of a trained model by ReLU, and distil it from the model that it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from math import cos, exp, pi
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.batches import Batch, batches, call, evaluating, observed
from sparsact.inference.block import Block
from sparsact.inference.comparison import main_output
from sparsact.inference.find_blocks import find_blocks
from sparsact.validation.parameters import checked_positive, checked_size
from sparsact_papers.training.penalties import ActivationPenalty, unit_counts

HELD_OUT: Final = 10  # one batch in ten measures the result
WARM_UP: Final = 0.05  # share of the training in which the learning rate rises
FIRST_PENALTY: Final = 0.01  # of the first step, whose relative errors are below 1
GRID: Final = (-9.0, -3.0, -1.5, -1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 9.0)  # where activations are compared
RATE: Final = 0.05  # largest change of the penalty's logarithm in a step


def with_relu(model: nn.Module, blocks: Sequence[Block]) -> nn.Module:
    """A copy of a model whose blocks have ReLU; training, as by ``relufy``, then recovers most of the accuracy.

    Parameters
    ----------
    model : nn.Module
        Left as it is.
    blocks : sequence of Block
        Their activations must be modules (``nn.GELU()``), not functions that a forward calls.

    Returns
    -------
    model : nn.Module
        The copy. Its layers have the same names; find its blocks again for their new activation.

    Raises
    ------
    ValueError
        If the activation of a block is not one module; names the block.

    Notes
    -----
    The module is found by its values: it has no parameters, and agrees with the block's activation on a grid.
    """
    changed = deepcopy(model)
    for block in blocks:
        holder, _, child = _activation_of(model, block).rpartition(".")
        setattr(changed.get_submodule(holder), child, nn.ReLU())
    return changed


def _activation_of(model: nn.Module, block: Block) -> str:
    """Name of the module that is the block's activation."""
    prefix = f"{block.holder}." if block.holder else ""
    names: list[str] = [prefix + name for name, _ in model.get_submodule(block.holder).named_modules() if name]
    same = [name for name in names if _has_the_values(model.get_submodule(name), block)]
    if len(same) > 1:  # several in a row, as in nn.Sequential: the one between the layers
        same = [name for name in same if names.index(block.reader) < names.index(name) < names.index(block.down)]
    if len(same) != 1:
        raise ValueError(
            f"the activation ({block.activation.name}) of block {block.name!r} must be one module to be replaced; "
            f"found {len(same)}: if its forward calls a function, write relu there."
        )
    return same[0]


@torch.no_grad()
def _has_the_values(module: nn.Module, block: Block) -> bool:
    if any(True for _ in module.children()) or any(True for _ in (*module.parameters(), *module.buffers())):
        return False
    thresholds = block.activation.zero_below
    z = torch.tensor(GRID)[:, None] if thresholds is None else torch.tensor(GRID)[:, None] + thresholds.float().cpu()
    wanted = block.activation.function(z if thresholds is None else z.to(thresholds))
    training = module.training
    module.eval()  # dropout is the identity then
    try:
        values = module(z.to(wanted))
    except (TypeError, ValueError, RuntimeError):  # it takes something else than one tensor
        return False
    finally:
        module.train(training)
    return isinstance(values, torch.Tensor) and values.shape == wanted.shape and torch.equal(values, wanted)


@dataclass(frozen=True)
class RelufyStep:
    """What :func:`relufy` reports after each step.

    Attributes
    ----------
    step : int
        Steps so far.
    loss : float
        Distillation loss of this step, without the penalty.
    density : float
        Share of activations of this step that were not zero.
    """

    step: int
    loss: float
    density: float


@dataclass(frozen=True, eq=False)
class Relufied:
    """A model with sparse activations, compared with the model it was made from on batches held out from training.

    Attributes
    ----------
    model : nn.Module
        The new model.
    density_before, density : float
        Mean share of activations of the blocks that are not zero, before and after.
    cosine : float
        Mean cosine between outputs of both models, over all positions.
    n_held_out : int
        Batches that the figures were measured on.
    """

    model: nn.Module
    density_before: float
    density: float
    cosine: float
    n_held_out: int

    def __str__(self) -> str:
        return (
            f"density {self.density_before:.1%} -> {self.density:.1%}, cosine {self.cosine:.4f} "
            f"on {self.n_held_out} batches held out"
        )


def relufy(
    model: nn.Module,
    data: Iterable[Batch],
    *,
    target_density: float = 0.1,
    steps: int = 1000,
    learning_rate: float = 5e-4,
    random_state: int = 0,
    progress: Callable[[RelufyStep], object] | None = None,
) -> Relufied:
    r"""A copy of a trained model with exactly sparse activations, distilled from the model itself.

    The activations of the feed-forward blocks are replaced by ReLU, and all parameters are trained on

    .. math::
        \frac{\|y - y^*\|^2}{\|y^*\|^2} + \frac1L \sum_\ell \frac{\|y_\ell - y_\ell^*\|^2}{\|y_\ell^*\|^2}
        + \lambda \sum_\ell \mathbb{E} |h^\ell_j|,

    where y are the outputs of the model, :math:`y_\ell` the outputs of its L blocks, a star marks the original, and
    :math:`\lambda` rises while more than ``target_density`` of the activations h are not zero, and falls while fewer
    are. No labels are needed. :func:`~sparsact.inference.sparsify` then exploits the zeros.

    Parameters
    ----------
    model : nn.Module
        The original; left as it is. The activation of each block must be a module.
    data : iterable of batches
        Two at least, each a tensor, a mapping of keyword arguments or a tuple of positional ones. All are held in
        memory; every tenth is held out to measure the result. They need no labels.
    target_density : float
        Share of activations, in (0, 1), that the penalty is steered to. Training may end above or below it.
    steps : int
        Steps of AdamW, a batch each.
    learning_rate : float
        The largest; it rises for 5 % of the training and falls to 0 along a cosine.
    random_state : int
        Seed of the order of the batches.
    progress : callable, optional
        Called with a :class:`RelufyStep` after every step.

    Returns
    -------
    result : Relufied
        The new model in evaluation mode, with density and agreement.

    Raises
    ------
    ValueError
        If there are fewer than two batches, no block, an activation that is no module, or a parameter is out of range.

    Notes
    -----
    At 20 % active units the result is hardly faster than the dense original, and int8 weights without any training are
    (``python -m benchmarks.minilm``): ``sparsify(model, weights="int8")``.

    A step costs a forward pass of the original and a forward and a backward pass of the new model. Both run in
    evaluation mode, without dropout. On one machine and number of threads, a seed and a number of steps fix the result.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 3))
    >>> result = relufy(model, list(torch.randn(20, 16, 4)), target_density=0.2, steps=200, learning_rate=1e-2)
    >>> result.density_before, result.density < 0.3, result.cosine > 0.9, type(result.model[1]).__name__
    (1.0, True, True, 'ReLU')
    """
    if not 0 < target_density < 1:
        raise ValueError(f"`target_density` must be a share between 0 and 1; got {target_density}.")
    checked_positive(learning_rate, "`learning_rate`")
    checked_size(steps, "`steps`")
    shown = list(batches(data))
    if len(shown) < 2:
        raise ValueError(f"`data` must hold two batches at least, one to measure the result; got {len(shown)}.")
    held_out, used = shown[::HELD_OUT], [batch for i, batch in enumerate(shown) if i % HELD_OUT]
    blocks = [block for block in find_blocks(model, shown[0]) if block.up]  # others have zeros already
    changed = with_relu(model, blocks)
    training = _Distillation(model, changed, blocks, target_density, learning_rate)
    with evaluating(model), torch.enable_grad():
        for taken, batch in enumerate(islice(_shuffled(used, random_state), steps)):
            loss, density = training.step(batch, taken / steps)
            if progress is not None:
                progress(RelufyStep(taken + 1, loss, density))
    return _measured(model, changed, blocks, held_out)


def _shuffled(shown: Sequence[Batch], random_state: int) -> Iterator[Batch]:
    """The batches in a random order, again and again."""
    generator = torch.Generator().manual_seed(random_state)
    while True:
        yield from (shown[i] for i in torch.randperm(len(shown), generator=generator).tolist())


class _TargetDensity(ActivationPenalty):
    """L1 on activations whose strength rises while more of them than a target share are not zero, and falls else."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block], target: float) -> None:
        super().__init__(model, blocks, 1.0)
        self.target, self.density, self._active = target, 1.0, list[Tensor]()
        self._calibrated = False

    def _on_activations(self, i: int, hidden: Tensor) -> None:
        super()._on_activations(i, hidden)
        self._active.append((hidden.detach() != 0).double().mean())

    def loss(self) -> Tensor:
        """The penalty of the calls since the last time."""
        value = super().loss()
        self.density, self._active = float(torch.stack(self._active).mean()), []
        factor = exp(RATE * max(-1.0, min(1.0, self.density / self.target - 1)))
        if not self._calibrated:
            self._calibrated, factor = True, FIRST_PENALTY / max(float(value.detach()), 1e-12)
        self.strength *= factor
        return value * factor


class _Distillation:
    """Training of a model to return what the original returns, with few activations that are not zero."""

    def __init__(
        self, original: nn.Module, changed: nn.Module, blocks: Sequence[Block], target: float, learning_rate: float
    ) -> None:
        self.original, self.changed, self.blocks = original, changed.eval(), blocks
        self.penalty, self.learning_rate = _TargetDensity(changed, blocks, target), learning_rate
        self.optimizer = torch.optim.AdamW(
            [parameter for parameter in changed.parameters() if parameter.requires_grad], weight_decay=0.0
        )

    def step(self, batch: Batch, share: float) -> tuple[float, float]:
        """The distillation loss and the density of a step, when a ``share`` of the training is done."""
        with torch.no_grad():
            wanted = _outputs(self.original, self.blocks, batch)
        with self.penalty:
            made = _outputs(self.changed, self.blocks, batch)
            penalty = self.penalty.loss()
        errors = [_relative_error(one, other) for one, other in zip(made, wanted, strict=True)]
        loss = errors[-1] + torch.stack(errors[:-1]).mean()
        self.optimizer.zero_grad()
        (loss + penalty).backward()  # type: ignore[no-untyped-call] # torch does not type it
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * min(share / WARM_UP, (1 + cos(pi * share)) / 2)
        self.optimizer.step()
        return float(loss.detach()), self.penalty.density


def _relative_error(made: Tensor, wanted: Tensor) -> Tensor:
    size = wanted.square().sum()
    return (made - wanted).square().sum() / size.clamp(min=torch.finfo(size.dtype).tiny)


def _outputs(model: nn.Module, blocks: Sequence[Block], batch: Batch) -> list[Tensor]:
    """What the blocks return, call by call, and at last the main output of the model."""
    seen: list[Tensor] = []
    with observed(model, [block.down for block in blocks], lambda name, args, output: seen.append(output)):
        output = main_output(call(model, batch))
    return [*seen, output]


def _measured(original: nn.Module, changed: nn.Module, blocks: Sequence[Block], shown: Sequence[Batch]) -> Relufied:
    """Both models compared on batches that the training has not seen."""
    cosines = list[Tensor]()
    with (
        evaluating(original),
        evaluating(changed),
        unit_counts(original, blocks) as before,
        unit_counts(changed, blocks) as after,
    ):
        for batch in shown:
            one, other = (main_output(call(model, batch)).double() for model in (original, changed))
            cosines.append(F.cosine_similarity(one, other, dim=-1).flatten())
        dense, sparse = before(), after()
    return Relufied(
        model=changed,
        density_before=sum(one.density for one in dense) / len(dense),
        density=sum(one.density for one in sparse) / len(sparse),
        cosine=float(torch.cat(cosines).mean()),
        n_held_out=len(shown),
    )
