"""Empirical risk minimisation in H_{n,s,k} against dense networks, boosted trees and polynomials: Theorems 5, 17, 19.

By the theorems order of k s n samples suffice for the sparse class where the dense class of s units needs s^2: but
these are bounds, and of the best network in the class, which no algorithm is known to find. Here learners that run are
compared, on planted networks whose active sets are halfspaces of any direction, at points that they have not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from sparsact_papers.charts import Chart, Frame, curves, panel_plot, panelled
from sparsact_papers.common.learners import LEARNERS, chosen
from sparsact_papers.common.planted import CAPS, CELLS, MEMBERS, REAL, ROTATED, sample
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.paper_a.erm_claims import CLAIMS, ENOUGH

FAMILIES: Final = {  # inputs, units, active units
    ROTATED: (20, 8, 1),
    CELLS: (20, 8, 2),
    CAPS: (60, 4, 1),
    MEMBERS: (40, 4, 1),
    REAL: (26, 8, 1),
}
NOISE: Final = 0.3  # standard deviation, relative to the target's
SAMPLES: Final = {Scale.SMOKE: (60, 120), Scale.QUICK: (200, 600), Scale.FULL: (500, 2000)}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each family, learner, number of samples and seed."""
    families = {ROTATED: (8, 2, 1)} if scale is Scale.SMOKE else dict(FAMILIES)
    if scale is Scale.QUICK:  # needs no data: a full run without the table lacks its tasks, and says why
        families = {name: families[name] for name in (ROTATED, CELLS)}
    cells = product(range(SEEDS[scale]), families.items(), SAMPLES[scale], LEARNERS)
    for seed, (family, (n, s, k)), m, learner in cells:
        yield {"family": family, "n": n, "s": s, "k": k, "learner": learner, "m": m, "seed": seed}


def measure(*, family: str, n: int, s: int, k: int, learner: str, m: int, seed: int) -> dict[str, float]:
    """Error at new points, and at the rows seen that of the learner and of the planted network, over the variance."""
    network, X, new = sample(family, n, s, k, m, seed)
    truth = network(new)
    variance = float(truth.var())
    noise = np.random.default_rng([seed, 3]).normal(size=m) * NOISE * np.sqrt(variance)
    labels = network(X) + noise
    model = chosen(learner, s, k, X, labels, seed)
    error = float(np.mean((model.predict(new) - truth) ** 2)) / variance
    train = float(np.mean((model.predict(X) - labels) ** 2)) / variance
    planted = float(np.mean(noise**2)) / variance
    return {"share": error, "train": train, "planted_train": planted, "gap": error + planted - train}


LEAST, MOST = 1e-4, 3.0  # values outside are drawn at these limits


def _panels(rows: Rows, column: str, name: str) -> Frame:
    def limited(row: Row) -> float:
        return float(np.clip(row[column], LEAST, MOST))

    families = [family for family in FAMILIES if len(rows.where(family=family))]
    return panelled(
        {family: curves(rows.where(family=family), "{learner}", "m", limited, name) for family in families}, "family"
    )


MEDIANS: Final = (
    "Medians over seeds and their intervals. Values below a ten-thousandth, or above three, are drawn there."
)


EXPERIMENT: Final = Experiment(
    name="erm-curves",
    paper="A",
    place="Theorems 5, 17 and 19",
    title="Samples: the sparse class against dense networks, trees and polynomials",
    summary="Networks of 4 or 8 units on 20 to 60 inputs: gates rotated in space, cells of random halfspaces (two "
    "active), caps of a sphere, random members of the class found by rejection on clustered points and on the rows of "
    "a real table. Labels have noise of 0.3 standard deviations. The sparse class, dense networks (L-BFGS, two starts "
    "and two penalties), boosted trees and polynomials choose their settings on a fifth of the rows, both kinds of "
    "networks among s and 3 s units. Errors are against the function at 4,000 new points.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "errors",
            "Error against samples",
            MEDIANS,
            partial(_panels, column="share", name="error / variance"),
            panel_plot(
                "samples m",
                "squared error / variance",
                log=(2, 10),
                levels={"a tenth of the variance": ENOUGH},
                columns=3,
                panel=(3.2, 2.5),
            ),
        ),
        Chart(
            "gaps",
            "Error on new labels less that on the labels seen",
            MEDIANS,
            partial(_panels, column="gap", name="gap / variance"),
            panel_plot("samples m", "gap / variance of the target", log=(2, 10), columns=3, panel=(3.2, 2.5)),
        ),
    ),
    order=330,
    version=2,
)
