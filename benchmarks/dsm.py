"""Training of a data-dependent sparse model (d = 8, t = 1,024, s = 256, batches of 32) beside plain PyTorch.

For information: steps a second of ``DSMRegressor(solver="rmsprop")`` and of ``torch.optim.RMSprop`` on the same masked
features, made once before and anew for each batch; one thread, float64 as ours and float32 as the paper's. And seconds
of the closed form, which is the optimum of that training, on the paper's 65,536 rows. Both top layers must agree.

    python -m benchmarks.dsm [--quick] [--out results/dsm.jsonl]
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.figures import Figure
from benchmarks.harness import interleaved
from benchmarks.program import program
from sparsact import DSMRegressor
from sparsact.learners.dsm.training import RMSProp, TopLayer

D, WIDTH, ACTIVE, BATCH, RATE = 8, 1024, 256, 32, 1e-5


def torch_epoch(
    linear: torch.nn.Linear,
    optimiser: torch.optim.Optimizer,
    features: Callable[[torch.Tensor], torch.Tensor],
    y: torch.Tensor,
    order: NDArray[np.intp],
) -> None:
    """One epoch as it is usually written."""
    for batch in torch.from_numpy(order).split(BATCH):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(linear(features(batch))[:, 0], y[batch]).backward()
        optimiser.step()


def masked(rows: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """Features of some rows."""
    z = rows @ B.T
    return torch.zeros_like(z).scatter(1, torch.topk(z, ACTIVE, sorted=False).indices, 1.0) * z


def measure(m: int, m_ridge: int, repeats: int) -> list[Figure]:
    """Steps of both, and the closed form."""
    rng = np.random.default_rng(2022)
    X = rng.uniform(-1, 1, size=(max(m, m_ridge), D))
    y = np.prod(X[:, :4], axis=1) + X[:, 4]
    layer = DSMRegressor(WIDTH, ACTIVE, random_state=0).fit(X[:100], y[:100]).layer_
    kept, Y, ones = layer.features(X[:m]), y[:m, None], np.ones(m)
    first = TopLayer.glorot(WIDTH, 1, rng=np.random.default_rng(0))

    def ours(features: Callable[[NDArray[np.intp]], NDArray[np.float64]]) -> TopLayer:
        top = TopLayer.glorot(WIDTH, 1, rng=np.random.default_rng(0))
        optimiser, order = RMSProp(RATE, 0.9, 1e-7), np.random.default_rng(1)
        top.epoch(features, Y, ones, optimiser, batch_size=BATCH, fit_intercept=True, rng=order)
        return top

    def theirs(dtype: torch.dtype, *, anew: bool) -> torch.nn.Linear:
        linear = torch.nn.Linear(WIDTH, 1, dtype=dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(first.A))
            linear.bias.zero_()
        optimiser = torch.optim.RMSprop(linear.parameters(), lr=RATE, alpha=0.9, eps=1e-7)
        rows, B, made = (
            torch.from_numpy(array).to(dtype) for array in (X[:m] - layer.bottom.centre, layer.bottom.B, kept)
        )
        features = (lambda batch: masked(rows[batch], B)) if anew else made.__getitem__
        order = np.random.default_rng(1).permutation(m)
        torch_epoch(linear, optimiser, features, torch.from_numpy(y[:m]).to(dtype), order)
        return linear

    calls: dict[str, Callable[[], object]] = {
        "ours, features kept": partial(ours, kept.__getitem__),
        "ours, features anew": partial(ours, lambda batch: layer.features(X[batch])),
        "torch float64, features kept": partial(theirs, torch.float64, anew=False),
        "torch float32, features kept": partial(theirs, torch.float32, anew=False),
        "torch float32, features anew": partial(theirs, torch.float32, anew=True),
    }
    times = interleaved(calls, repeats)
    work, steps = f"RMSProp d={D} t={WIDTH:,} s={ACTIVE} batch {BATCH}", -(-m // BATCH)
    figures = [Figure.of(work, name, [steps / s for s in taken], "steps/s") for name, taken in times.items()]
    for name in ("kept", "anew"):
        slow, fast = times[f"torch float32, features {name}"], times[f"ours, features {name}"]
        figures.append(Figure.ratio(work, f"times as fast as float32, features {name}", slow, fast))
    A = theirs(torch.float64, anew=False).weight.detach().numpy()
    difference = float(np.abs(ours(kept.__getitem__).A - A).max() / np.abs(A - first.A).max())
    figures.append(Figure(work, "difference of top layers over the change", difference, "", most=1e-6))
    taken = interleaved({"fit": lambda: DSMRegressor(WIDTH, ACTIVE).fit(X[:m_ridge], y[:m_ridge])}, min(repeats, 3))
    figures.append(Figure.of(f"closed form d={D} t={WIDTH:,} s={ACTIVE} m={m_ridge:,}", "fit", taken["fit"], "s"))
    return figures


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    return measure(*((640, 2_000) if arguments.quick else (16_384, 65_536)), arguments.repeats)
