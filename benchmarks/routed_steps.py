"""A training step of each layer of the experiment ``routed-layers``, against that of a dense layer.

At the experiment's full size, all layers in turns. Unit: CPU seconds on one thread. No goal: documentation says with
these figures what each layer gains in the time in which the dense one is trained.
"""

from __future__ import annotations

import time

import torch
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, options, report
from benchmarks.harness import interleaved
from sparsact_papers.experiment import Scale
from sparsact_papers.practice.routed_layers import DENSE, MODELS, SIZES, training_step, unmet


def main() -> int:
    """Measure, print the table, keep the rows."""
    arguments = options(__doc__, repeats=9).parse_args()
    if obstacle := unmet():
        raise SystemExit(obstacle)
    sizes, figures = SIZES[Scale.SMOKE if arguments.quick else Scale.FULL], []
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for data, models in MODELS.items():
            steps = {model: training_step(data, model, **sizes) for model in models}
            seconds = interleaved(steps, arguments.repeats, clock=time.process_time)
            for model, its in seconds.items():
                figures.append(Figure.of(data, f"{model}, CPU seconds", its, "s"))
                figures.append(Figure.ratio(data, f"{model}, times the dense layer's", its, seconds[DENSE]))
    return report("routed_steps", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
