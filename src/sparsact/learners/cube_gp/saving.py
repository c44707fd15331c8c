"""Kernels and posteriors as plain arrays, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np

from sparsact.learners.cube_gp.component import Component
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.posterior_mixture import MarginalPosterior
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays

_COMPONENT: Final = {"by_degree": ArrayField("a"), "by_site": ArrayField("b"), "by_pair": ArrayField("c")}
_POSTERIOR: Final = {
    "bits": ArrayField("m n", np.uint8),
    "y": ArrayField("m", finite=True),
    "weights": ArrayField("m", finite=True, nonnegative=True),
    "scatter": ArrayField("m", finite=True, nonnegative=True),
    "counts": ArrayField("m", finite=True, nonnegative=True),
    "log_weights": ArrayField("m", finite=True),
    "alpha": ArrayField("m", finite=True),
    "noise_variance": ArrayField("1", finite=True, nonnegative=True),
    "parameters": ArrayField("draws k", finite=True),
    "inducing": ArrayField("u", np.int64, nonnegative=True, optional=True),
    "seed": ArrayField("seeds", np.int64, nonnegative=True),
    "units": ArrayField("2", finite=True),
}


def kernel_arrays(kernel: CubeKernel) -> Arrays:
    """The parameters of all components."""
    arrays: Arrays = {}
    for place, component in enumerate(kernel.components):
        arrays |= schema.add_prefix(str(place), {name: getattr(component, name) for name in _COMPONENT})
    return arrays


def read_kernel(n: int, arrays: Arrays) -> CubeKernel:
    """The kernel that :func:`kernel_arrays` took apart."""
    components: list[Component] = []
    while own := schema.strip_prefix(str(len(components)), arrays):
        read = schema.read_arrays(_COMPONENT, own)
        lengths = [len(block) for block in read.values()]
        if lengths[0] not in (1, n + 1) or lengths[1] not in (0, n) or lengths[2] not in (0, n * (n - 1) // 2):
            raise ValueError(f"a component of {n} coordinates with {lengths} parameters")
        if any(np.isnan(block).any() for block in read.values()) or (lengths[:2] == [1, 0]):
            raise ValueError("a component that is no kernel")
        components.append(Component(n, **read))
    if not components:
        raise ValueError("no kernel")
    return CubeKernel(tuple(components))


def posterior_arrays(posterior: MarginalPosterior) -> Arrays:
    """Rows, dual coefficients, noise, kernel, and draws of these two."""
    given, rows = posterior.given, posterior.rows
    arrays: Arrays = {each.name: getattr(rows, each.name) for each in fields(DistinctRows)} | {
        "bits": rows.bits.astype(np.uint8),
        "alpha": posterior.best.alpha,
        "noise_variance": np.array([given.noise_variance]),
        "parameters": posterior.parameters,
        "seed": np.array(posterior.seed, dtype=np.int64),
        "units": np.array([posterior.shift, posterior.unit]),
    }
    if posterior.inducing is not None:
        arrays["inducing"] = posterior.inducing.inducing
    return arrays | schema.add_prefix("kernel", kernel_arrays(given.kernel))


def read_posterior(n: int, arrays: Arrays) -> MarginalPosterior:
    """The posterior that :func:`posterior_arrays` took apart."""
    kernel = read_kernel(n, schema.strip_prefix("kernel", arrays))
    read = schema.read_arrays(_POSTERIOR, arrays, n=n, k=kernel.theta.size + 1)
    noise_variance = float(read["noise_variance"][0])
    if not len(read["y"]) or (read["bits"] > 1).any() or not read["weights"].all() or not read["counts"].all():
        raise ValueError("rows that are no points of the cube, or have no weight")
    shift, unit = read["units"].tolist()
    if not noise_variance or not unit > 0:
        raise ValueError("no noise, or a scale that is not positive")
    read["bits"] = read["bits"].astype(np.float64)
    rows = DistinctRows(*(read[each.name] for each in fields(DistinctRows)))
    inducing = read.get("inducing")
    if inducing is not None and (
        kernel.has_table or not len(inducing) or (np.diff(inducing) <= 0).any() or inducing[-1] >= len(rows)
    ):
        raise ValueError("inducing points that are not distinct rows in their order, or where there are none")
    given, seed = Hyperparameters(kernel, noise_variance), tuple(read["seed"].tolist())
    best = given.posterior(rows, inducing, known_alpha=read["alpha"])
    return MarginalPosterior(rows, given, best, read["parameters"], seed, shift, unit)
