"""Replace the activations of a trained model by ReLU, and train it to compute sparsely what it computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, exp, inf, pi
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.batches import Batch, batches, call, evaluating, observed
from sparsact.inference.block import Block, checked_blocks
from sparsact.inference.comparison import main_output
from sparsact.inference.find_blocks import find_blocks
from sparsact.inference.training import ActivationPenalty, unit_counts, with_relu
from sparsact.validation.parameters import checked_option, checked_positive, checked_size

HELD_OUT: Final = 10  # one batch in ten measures the result
STEPS: Final = 1000  # if neither steps nor seconds are given
WARM_UP: Final = 0.05  # share of the training in which the learning rate rises
FIRST_PENALTY: Final = 0.01  # of the first step, whose relative errors are below 1
RATE: Final = 0.05  # largest change of the penalty's logarithm in a step


class ShiftedReLU(nn.Module):
    """ReLU of z - shift."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.shift = shift

    def forward(self, z: Tensor) -> Tensor:
        """Activations of the shape of z."""
        return F.relu(z - self.shift)

    def extra_repr(self) -> str:
        """The shift."""
        return f"{self.shift}"


ACTIVATIONS: Final[dict[str, Callable[[float], nn.Module]]] = {
    "relu": lambda threshold: nn.ReLU(),
    "shifted_relu": ShiftedReLU,
    "fatrelu": lambda threshold: nn.Threshold(threshold, 0.0),
}


@dataclass(frozen=True)
class RelufyStep:
    """What :func:`relufy` reports after each step.

    Attributes
    ----------
    step : int
        Steps so far.
    share : float
        Share of the training that is done.
    loss : float
        Distillation loss of this step, without the penalty.
    density : float
        Share of activations of this step that were not zero.
    """

    step: int
    share: float
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
    block_density : dict of str to float
        The density of each block.
    cosine : float
        Mean cosine between outputs of both models, over all positions.
    kl : float or None
        Mean Kullback-Leibler divergence, in nats, of the new distribution from the original; None without ``logits``.
    steps : int
    seconds : float
        Of the training.
    n_held_out : int
        Batches that the figures were measured on.
    """

    model: nn.Module
    density_before: float
    density: float
    block_density: dict[str, float]
    cosine: float
    kl: float | None
    steps: int
    seconds: float
    n_held_out: int

    def __str__(self) -> str:
        divergence = "" if self.kl is None else f", KL {self.kl:.3g} nats"
        return (
            f"density {self.density_before:.1%} -> {self.density:.1%}, cosine {self.cosine:.4f}{divergence} "
            f"on {self.n_held_out} batches held out; {self.steps:,} steps, {self.seconds:.3g} s"
        )


def relufy(
    model: nn.Module,
    data: Iterable[Batch],
    *,
    activation: str = "relu",
    threshold: float = 0.0,
    target_density: float = 0.1,
    steps: int | None = None,
    seconds: float | None = None,
    learning_rate: float = 5e-4,
    blocks: Sequence[Block] | None = None,
    random_state: int = 0,
    progress: Callable[[RelufyStep], object] | None = None,
) -> Relufied:
    r"""A copy of a trained model with exactly sparse activations, distilled from the model itself.

    The activations of the feed-forward blocks are replaced by ReLU, and all parameters are trained on

    .. math::
        \frac{\|y - y^*\|^2}{\|y^*\|^2} + \frac1L \sum_\ell \frac{\|y_\ell - y_\ell^*\|^2}{\|y_\ell^*\|^2}
        + \lambda \sum_\ell \mathbb{E} |h^\ell_j|,

    where y are the outputs of the model, :math:`y_\ell` those of its L blocks, a star marks the original, and
    :math:`\lambda` rises while more than ``target_density`` of the activations h are not zero, and falls while fewer
    are. No labels are needed. :func:`~sparsact.inference.sparsify` then exploits the zeros.

    Parameters
    ----------
    model : nn.Module
        The original; left as it is. The activation of each block must be a module.
    data : iterable of batches
        Two at least, each a tensor, a mapping of keyword arguments or a tuple of positional ones. All are held in
        memory; every tenth is held out to measure the result. They need no labels.
    activation : {"relu", "shifted_relu", "fatrelu"}
        :math:`\max(z, 0)`, :math:`\max(z - t, 0)`, or z where z > t and else 0.
    threshold : float
        t, at least 0; of the latter two.
    target_density : float
        Share of activations, in (0, 1), that the penalty is steered to. Training may end above or below it.
    steps : int, optional
        Steps of AdamW, a batch each; 1000 if ``seconds`` are not given either.
    seconds : float, optional
        Stop after this time. The result then depends on the speed of the machine.
    learning_rate : float
        The largest; it rises for 5 % of the training and falls to 0 along a cosine.
    blocks : sequence of Block, optional
        By default all that :func:`~sparsact.inference.find_blocks` finds on the first batch.
    random_state : int
        Seed of the order of the batches.
    progress : callable, optional
        Called with a :class:`RelufyStep` after every step.

    Returns
    -------
    result : Relufied
        The new model in evaluation mode, with density, agreement and time.

    Raises
    ------
    ValueError
        If there are fewer than two batches, no block, an activation that is no module, or a parameter is out of range.

    Notes
    -----
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
    checked_option(activation, "`activation`", ACTIVATIONS)
    _check(threshold, target_density)
    checked_positive(learning_rate, "`learning_rate`")
    default = STEPS if seconds is None else inf
    n_steps = default if steps is None else checked_size(steps, "`steps`")
    time_limit = inf if seconds is None else checked_positive(seconds, "`seconds`")
    shown = list(batches(data))
    if len(shown) < 2:
        raise ValueError(f"`data` must hold two batches at least, one to measure the result; got {len(shown)}.")
    held_out, used = shown[::HELD_OUT], [batch for i, batch in enumerate(shown) if i % HELD_OUT]
    found = checked_blocks(model, blocks if blocks is not None else _own_blocks(model, shown[0]))
    changed = with_relu(model, found, ACTIVATIONS[activation](threshold))
    started = time.perf_counter()
    training = _Distillation(model, changed, found, target_density, learning_rate)
    with evaluating(model), torch.enable_grad():
        taken, share = 0, 0.0
        for batch in _shuffled(used, random_state):
            loss, density = training.step(batch, share)
            taken += 1
            share = max(taken / n_steps, (time.perf_counter() - started) / time_limit)
            if progress is not None:
                progress(RelufyStep(taken, min(share, 1.0), loss, density))
            if share >= 1:
                break
    return _measured(model, changed, found, held_out, taken, time.perf_counter() - started)


def _own_blocks(model: nn.Module, batch: Batch) -> list[Block]:
    """The blocks of a model but those of experts that it stacks in one parameter."""
    found = find_blocks(model, batch)
    own = [one for one in found if one.fits(model)]
    if not own:
        raise ValueError(
            f"relufy changes activations between two modules, and the {len(found)} blocks of this model are experts "
            'stacked in one parameter: set their activation to ReLU where the model is built (hidden_act="relu").'
        )
    return own


def _check(threshold: float, target_density: float) -> None:
    if not 0 <= threshold < inf:
        raise ValueError(f"`threshold` must be at least 0, so that 0 switches a unit off; got {threshold}.")
    if not 0 < target_density < 1:
        raise ValueError(f"`target_density` must be a share between 0 and 1; got {target_density}.")


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


def _measured(
    original: nn.Module, changed: nn.Module, blocks: Sequence[Block], shown: Sequence[Batch], steps: int, seconds: float
) -> Relufied:
    """Both models compared on batches that the training has not seen."""
    cosines, divergences = list[Tensor](), list[Tensor]()
    with (
        evaluating(original),
        evaluating(changed),
        unit_counts(original, blocks) as before,
        unit_counts(changed, blocks) as after,
    ):
        for batch in shown:
            wanted, made = call(original, batch), call(changed, batch)
            one, other = main_output(wanted).double(), main_output(made).double()
            cosines.append(F.cosine_similarity(one, other, dim=-1).flatten())
            if hasattr(wanted, "logits"):
                terms = F.kl_div(other.log_softmax(-1), one.log_softmax(-1), log_target=True, reduction="none")
                divergences.append(terms.sum(-1).flatten())
        dense, sparse = before(), after()
    return Relufied(
        model=changed,
        density_before=sum(one.density for one in dense) / len(dense),
        density=sum(one.density for one in sparse) / len(sparse),
        block_density={block.name: one.density for block, one in zip(blocks, sparse, strict=True)},
        cosine=float(torch.cat(cosines).mean()),
        kl=float(torch.cat(divergences).mean()) if divergences else None,
        steps=steps,
        seconds=seconds,
        n_held_out=len(shown),
    )
