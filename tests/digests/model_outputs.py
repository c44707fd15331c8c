"""Outputs of routers, layers and models of torch, of bounds and hardness, and of the command."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from outputs import item, network, rows

import sparsact as sa

# ---- routers, layers, models of torch ----


@item()
def routers() -> Iterator[tuple[str, Any]]:
    from sparsact import routing as r

    X = np.random.default_rng(10).normal(size=(50, 12))
    kinds = [
        r.TopK(3), r.HyperplaneLSH(3, 2), r.EuclideanLSH(2, 1.5, 2, 16), r.RandomHash(3, 16), r.Switch(5),
        r.BlockTop1(3, 4), r.Nearest(2, 9), r.Interpolation(20), r.Tree(3),
    ]  # fmt: skip
    for router in kinds:
        yield type(router).__name__, np.asarray(router(X).dense())


@item()
def layers() -> Iterator[tuple[str, Any]]:
    import torch

    from sparsact import layers as made
    from sparsact import routing as r

    draw = torch.Generator().manual_seed(0)
    x = torch.randn(23, 12, generator=draw)
    options: dict[str, Any] = {"generator": draw}
    kinds = {
        "top k": made.SparselyActivatedLayer(12, 20, 7, router=r.TopK(4), **options),
        "switch": made.SwitchLayer(12, 10, 7, router=r.Switch(5), **options),
        "buckets": made.LSHLayer(12, 7, router=r.HyperplaneLSH(3, 2), degree=1, **options),
        "blocks": made.BlockSparseFeedForward(12, 24, 6, **options),
    }
    for name, layer in kinds.items():
        with torch.no_grad():
            yield name, layer.eval()(x).numpy()


def relu_block() -> Any:
    """A block whose units are on for a few inputs."""
    import torch
    from torch import nn

    draw = torch.Generator().manual_seed(2)
    made = nn.Sequential(nn.Linear(24, 70), nn.ReLU(), nn.Linear(70, 18)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(generator=draw).div_(24**0.5 if parameter.ndim > 1 else 1)
        made[0].bias.sub_(1.5)
    return made


def of_single_rows(sparse: Any, x: Any) -> Any:
    """What a model returns for the first rows, one at a time."""
    import torch

    with torch.no_grad():
        return torch.cat([sparse(row) for row in x[:40].split(1)]).numpy()


@item()
def sparsified() -> Iterator[tuple[str, Any]]:
    import torch

    x = torch.randn(400, 24, generator=torch.Generator().manual_seed(3))
    for method in ("exact", "certified"):
        sparse = sa.sparsify(relu_block(), method, list(x.split(8)))
        (choice,) = sa.plan_of(sparse).choices
        yield method, {"values": of_single_rows(sparse, x), "density": choice.density, "method": choice.method}
    for weights in ("int8", "int4"):
        for kept in (True, False):
            sparse = sa.sparsify(relu_block(), "exact", list(x.split(8)), weights=weights, keep_weights=kept)
            values, error = of_single_rows(sparse, x), sa.plan_of(sparse).output_error
            yield f"{weights}{'' if kept else ', weights freed'}", {"values": values, "error": error}
    yield "measured", json.loads(sa.measure(relu_block(), [x[:100], x[100:]]).to_json())


@item(tolerance=1e-3)  # the threshold is one of the sums, whose last bit depends on the processor: a unit on or off
def approximated() -> Iterator[tuple[str, Any]]:
    import torch

    x = torch.randn(400, 24, generator=torch.Generator().manual_seed(3))
    targets: dict[str, dict[str, Any]] = {"error": {"error": 0.1}, "density": {"density": 0.1}}
    for name, target in targets.items():
        sparse = sa.sparsify(relu_block(), "approximate", list(x.split(8)), **target)
        (choice,) = sa.plan_of(sparse).choices
        yield name, {"values": of_single_rows(sparse, x), "density": choice.density, "method": choice.method}


@item(tolerance=1e-5)
def mixtures() -> Iterator[tuple[str, Any]]:
    import torch

    from sparsact import layers as made

    kinds: dict[str, dict[str, Any]] = {
        "top 2": {"n_active": 2}, "shared": {"n_active": 1, "n_shared": 1},
        "reglu": {"n_active": 2, "activation": "reglu"}, "sigmoid": {"n_active": 2, "router": "sigmoid"},
        "expert choice": {"router": "expert_choice"},
    }  # fmt: skip
    for name, options in kinds.items():
        draw = torch.Generator().manual_seed(5)
        layer = made.MixtureOfExperts(10, 14, n_experts=6, generator=draw, **options)
        x = torch.randn(37, 10, generator=draw, requires_grad=True)
        layer(x).square().sum().backward()
        gradients = [p.grad.numpy() for p in layer.parameters() if p.grad is not None]
        yield name, {"values": layer.eval()(x).detach().numpy(), "of inputs": x.grad.numpy(), "of weights": gradients}


# ---- bounds, hardness ----


@item()
def bounds() -> Iterator[tuple[str, Any]]:
    from sparsact import bounds as b

    at: dict[str, Any] = {
        "n": 5, "s": 2, "k": 1, "m": 900, "degree": 3, "ambient": 20, "intrinsic": 3, "n_directions": 64, "cuts": 7,
        "p": 4, "W": 0.5, "B": 0.5, "R": 3.0, "C": 4.0, "L": 2.0, "epsilon": 0.5, "delta": 0.05, "rho": 0.75,
        "probability": 0.25, "tau": 0.125, "bucket_width": 0.5, "length": 10, "radius": 0.01, "p_modulus": 3,
        "gamma": 0.25, "q_modulus": 8, "noise_sensitivity": 0.01, "average_sensitivity": 2.0, "second_moment": 1.5,
        "complexity": lambda m: m**-0.5,
    }  # fmt: skip
    for entry in b.BOUNDS:
        yield f"{entry.statement}, {entry.name}", entry.function(**{name: at[name] for name in entry.parameters})
    X, y = 1 - 2 * rows()[0], rows()[2][:, 0]
    yield "degree enough", vars(b.degree_for(network(), 0.2))
    yield "unexplained variance", vars(b.unexplained_variance(X, y, rng=np.random.default_rng(0)))


@item()
def hardness() -> Any:
    from sparsact import hardness as h

    X = 1 - 2 * rows(500)[0]
    junta = h.learn_junta(X, X[:, 1] * X[:, 4], 2)
    oracle = h.MembershipOracle(lambda Z: Z[:, 0] * Z[:, 2], 10)
    heavy = h.heavy_coefficients(oracle, 0.5, rng=np.random.default_rng(0))
    return {
        "parity": list(h.learn_parity(X, X[:, 1] * X[:, 4] * X[:, 6]).subset),
        "junta": list(junta.variables),
        "heavy": [[list(subset), value] for subset, value in heavy.top(3)],
    }


@item()
def rademacher() -> Any:
    from sparsact.rademacher import exact_complexity, lower_complexity

    X = 1 - 2 * rows(4, 9, 1)[0][:, :3]
    lower = lower_complexity(X, 3, 1, rng=np.random.default_rng(0))
    return [list(vars(found).values()) for found in (exact_complexity(X, 2, 1), lower)]


# ---- the command ----


@item(tolerance=1e-4)  # weights of models in an ensemble end where a search stops; processors move them by 1e-5
def fit_json() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(11)
    bits, reals = rng.integers(0, 2, (400, 6)), rng.uniform(-1, 1, (400, 3)).round(6)
    s, letters = 1 - 2 * bits, np.array(list("ACGT"))[rng.integers(0, 4, (400, 2))]
    y = 2 * s[:, 0] * s[:, 3] + s[:, 1] + 0.3 * rng.normal(size=400)
    named = {f"b{i}": bits[:, i] for i in range(6)}
    kinds = np.array(["no", "maybe", "yes"])[(y > 1).astype(int) + (y > -1)]
    rough = np.floor(3 * reals[:, 0]) * np.floor(3 * reals[:, 1]) + 0.05 * rng.normal(size=400)
    smooth = reals[:, 0] * reals[:, 1] + reals[:, 2] + 0.1 * rng.normal(size=400)
    numbers = {name: reals[:, i] for i, name in enumerate("uvw")}
    tables: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "bits": ({**named, "y": y}, ()),
        "signs": ({**{f"s{i}": s[:, i] for i in range(6)}, "y": y}, ("--degree", "2", "--alpha", "0.5")),
        "real columns": ({**numbers, "y": smooth}, ("--model", "low-degree")),
        "texts": ({"first": letters[:, 0], "second": letters[:, 1], **named, "y": y + (letters[:, 0] == "A")}, ()),
        "classes": ({**named, "y": kinds}, ()),
        "targets": ({**named, "y": y, "z": s[:, 2] - s[:, 4] * s[:, 5]}, ("--target", "z")),
        "ignored": ({**named, "row": np.arange(400), "again": 2 * y, "y": y}, ("--ignore", "again", "--folds", "4")),
        "rough": ({**numbers, "y": rough}, ()),
    }
    for name, (columns, options) in tables.items():
        yield name, printed_by_fit(columns, options)


def printed_by_fit(columns: dict[str, Any], options: tuple[str, ...]) -> Any:
    from sparsact.cli import main

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = main(["fit", str(path), "--target", "y", *options, "--json"])
    if status:
        raise RuntimeError(f"sparsact fit ended with {status}")
    return json.loads(out.getvalue())
