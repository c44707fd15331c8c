"""The arrays of an ensemble in a file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.letters.boosted import LetterTrees, columns_of
from sparsact.learners.letters.ensemble import (
    MEMBERS,
    MEMBERS_OF_QUANTITIES,
    NETWORKS,
    SCORES,
    SCORES_OF_QUANTITIES,
    TREES,
    LetterEnsemble,
    MemberScore,
    Model,
)
from sparsact.learners.letters.kernel import LetterKernel, prior
from sparsact.learners.letters.perceptrons import UNITS, Perceptrons, inputs
from sparsact.learners.letters.process import system_of
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays

_ENSEMBLE: Final = {
    "codes": ArrayField("m n", np.uint8),
    "weights": ArrayField("members", finite=True, nonnegative=True),
    "unit": ArrayField("1", finite=True, nonnegative=True),
}
_PROCESSES: Final = {
    "theta": ArrayField("k parameters", finite=True),
    "alpha": ArrayField("k rows", finite=True),
    "row_weights": ArrayField("rows", finite=True, nonnegative=True, optional=True),  # earlier files have none
}
_UNITS: Final = {"units": ArrayField("2", finite=True)}
_CURVE: Final = {"knots": ArrayField("t", finite=True), "values": ArrayField("t", finite=True)}
_LAYERS: Final = ("first", "second", "last", "first_bias", "second_bias", "last_bias")


def ensemble_arrays(ensemble: LetterEnsemble) -> Arrays:
    """Rows, parameters and dual coefficients of the processes, networks, curves and weights."""
    arrays: Arrays = {
        "codes": ensemble.codes.astype(np.uint8),
        "weights": ensemble.weights,
        "unit": np.array([ensemble.unit]),
    }
    for place, score in enumerate(ensemble.scores.values()):
        own: Arrays = {"units": np.array([score.centre, score.scale])}
        processes = [model for model in score.models if isinstance(model, Posterior)]
        networks = [model for model in score.models if isinstance(model, Perceptrons)]
        for model in score.models:
            own |= schema.add_prefix("trees", model.trees.arrays()) if isinstance(model, LetterTrees) else {}
        for model in networks:
            own |= dict(zip(_LAYERS, model.weights, strict=True))
        if processes:
            own["theta"] = np.stack([process.system.kernel.theta for process in processes])
            own["alpha"] = np.stack([process.alpha for process in processes])
            first = processes[0].system
            if isinstance(first.kernel, LetterKernel):
                own["row_weights"] = first.kernel.noise_variance / first.noise
        arrays |= schema.add_prefix(f"score{place}", own)
    for place, (knots, values) in enumerate(ensemble.curves):
        arrays |= schema.add_prefix(f"curve{place}", {"knots": knots, "values": values})
    return arrays


def read_ensemble(features: Sequence[Array], arrays: Arrays, *, quantities: bool) -> LetterEnsemble:
    """The ensemble that :func:`ensemble_arrays` took apart."""
    members = MEMBERS_OF_QUANTITIES if quantities else MEMBERS
    read = schema.read_arrays(_ENSEMBLE, arrays, n=len(features), members=len(members))
    codes = read["codes"].astype(np.intp)
    if not len(codes) or (codes >= [len(of_site) for of_site in features]).any():
        raise ValueError("rows of letters that the sites do not have")
    unit = float(read["unit"][0])
    if not unit:
        raise ValueError("a unit of zero")
    scores: dict[str, MemberScore] = {}
    for place, name in enumerate(SCORES_OF_QUANTITIES if quantities else SCORES):
        own = schema.strip_prefix(f"score{place}", arrays)
        if name in TREES:
            models = _read_trees(features, own)
        else:
            models = _read_networks(features, own) if name == NETWORKS else _read_processes(features, codes, own)
        scores[name] = MemberScore(models, *schema.read_arrays(_UNITS, own)["units"].tolist())
    curves = []
    for place, (_, curved) in enumerate(members):
        curve = schema.read_arrays(_CURVE, schema.strip_prefix(f"curve{place}", arrays))
        if curved != bool(len(curve["knots"])) or (np.diff(curve["knots"]) <= 0).any():
            raise ValueError("a curve whose knots do not rise")
        curves.append((curve["knots"], curve["values"]))
    return LetterEnsemble(scores, tuple(curves), read["weights"], codes, unit)


def _read_processes(features: Sequence[Array], codes: Codes, arrays: Arrays) -> Sequence[Model]:
    read = schema.read_arrays(_PROCESSES, arrays, parameters=len(prior(features)[0]))
    if read["alpha"].shape[1] > len(codes):
        raise ValueError("more dual coefficients than rows")
    n_rows = read["alpha"].shape[1]
    weights = read.get("row_weights", np.ones(n_rows))
    if not weights.all():
        raise ValueError("rows of no weight")
    members = [
        Posterior(system_of(LetterKernel(tuple(features), theta), codes[:n_rows], weights), alpha)
        for theta, alpha in zip(read["theta"], read["alpha"], strict=True)
    ]
    if not members:
        raise ValueError("no process")
    return tuple(members)


def _read_networks(features: Sequence[Array], arrays: Arrays) -> Sequence[Model]:
    n_inputs = inputs(np.zeros((1, len(features)), dtype=np.intp), features).shape[1]
    shapes = (f"k {n_inputs} {UNITS}", f"k {UNITS} {UNITS}", f"k {UNITS} 1", f"k 1 {UNITS}", f"k 1 {UNITS}", "k 1 1")
    fields = {name: ArrayField(shape, np.float32, finite=True) for name, shape in zip(_LAYERS, shapes, strict=True)}
    read = schema.read_arrays(fields, arrays)
    if not len(read["first"]):
        raise ValueError("no network")
    return (Perceptrons(tuple(features), list(read.values())),)


def _read_trees(features: Sequence[Array], arrays: Arrays) -> Sequence[Model]:
    n_columns = columns_of(np.zeros((1, len(features)), dtype=np.intp), features).shape[1]
    own = schema.strip_prefix("trees", arrays)
    if "base" not in own or not own["base"].size:
        raise ValueError("no trees")
    return (LetterTrees(tuple(features), TreeEnsemble.from_arrays(own, n_columns, own["base"].size)),)
