"""Measurements that tests hand to worker processes: they must be found by name in a module."""

import os
import time
from pathlib import Path

import numpy as np

from sparsact_papers.experiments import Claim, Experiment, Outcome, Scale, Verdict


def square(*, number, seed):
    """A quick result that depends on nothing else."""
    return {"square": number**2, "draw": np.random.default_rng([seed, number]).normal(size=2), "text": "x"}


def slow_square(*, number, seed):
    """The same, a moment later: a process can be killed in its middle."""
    time.sleep(0.05)
    return square(number=number, seed=seed)


def faulty(*, number, seed):
    """Fails for one number, kills its process for another, gives something that is no number for a third."""
    if number == 1:
        raise ValueError("one is refused")
    if number == 2:
        os._exit(9)
    if number == 3:
        return {"square": float("nan")}
    return square(number=number, seed=seed)


def beside_a_killer(*, number, seed):
    """The first kills its process at once; the others take their time."""
    if number == 0:
        os._exit(9)
    time.sleep(0.4)
    return square(number=number, seed=seed)


def dies_later(*, number, seed):
    """The first kills its process, when its neighbour has long been done."""
    if number == 0:
        time.sleep(0.2)
        os._exit(9)
    return square(number=number, seed=seed)


def counted(*, number, seed, folder):
    """Leaves a mark of each call."""
    with (Path(folder) / f"call-{number}").open("a") as file:
        file.write("x")
    return square(number=number, seed=seed)


def experiment(measure, numbers=range(5), *, version=1, **constant):
    """An experiment of those numbers and one seed."""
    return Experiment(
        name=measure.__name__.replace("_", "-"),
        paper="A",
        place="nowhere",
        title="numbers",
        summary="for tests",
        version=version,
        parameters=lambda scale: [
            {"number": number, "seed": 7, **constant} for number in numbers if scale is Scale.FULL or number < 3
        ],
        measure=measure,
        charts=(),
        claims=(
            Claim(
                "any",
                place="nowhere",
                statement="Rows are.",
                printed="",
                rule="any row",
                judge=lambda rows: Verdict(Outcome.HOLDS, str(len(rows))),
                refuted_if="never",
            ),
        ),
        order=1,
    )


def work(of, scale=Scale.FULL):
    """What ``collect`` takes."""
    return [(of, task) for task in of.tasks(scale)]
