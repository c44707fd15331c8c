"""One vocabulary of parameters in all public signatures and options."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from importlib.util import find_spec

from sklearn.base import BaseEstimator
from typer.main import get_command

import sparsact as sa
from sparsact.cli.app import app

BANNED = {
    "width": "n_units or bucket_width",
    "hidden": "n_units",
    "s": "n_units",
    "k": "n_active, or max_active of a bound",
    "seed": "random_state",
    "forget": "remove",
    "sign": "remove",
    "distribution": "examples or feature_distribution",
    "on_rows": "progress",
    "on_progress": "progress",
    "threads": "n_threads",
}
EXCEPTIONS = {  # by the beginning of a name: what stays there, and why
    "sparsact.bounds": ("s k", "formulas, in the letters of the papers"),
    "sparsact.constructions.junta.extremal": ("k", "in the letters of the bound that it attains"),
    "sparsact.rademacher": ("s k", "the class H_{n,s,k}^{W,B}, in the letters of the bounds that it is compared with"),
    "sparsact.fourier.spectrum.Spectrum": ("k", "number of coefficients: nothing is active"),
    "sparsact.fourier.interactions.Interactions.top": ("k", "number of values, as of Spectrum.top"),
    "sparsact.kernels.selection.top_k": ("k", "number of the largest values, as the kernel's own name says"),
    "sparsact.inference.certified_top_k": ("k", "number of the largest outputs, as in torch.topk"),
    "sparsact.inference.sparsifying.sparsify": ("k", "number of the largest outputs of a head, as of its method top_k"),
    "sparsact.inference.plan.HeadPlan": ("k", "number of the largest outputs, as of sparsify"),
    "sparsact.inference.autoencoder.Autoencoder": ("k", "number of the largest features, as of torch.topk"),
    "sparsact.routing": ("width", "a method: the number of units that a router needs for some number of columns"),
    "sparsact.activity": ("distribution", "the counts of active units"),
    "sparsact.certificate": ("distribution", "the law of inputs without labels, and the counts of active units"),
}
LEFT_OUT = (".cli",) if find_spec("triton") is not None else (".cli", ".triton")
FOLDERS = sorted(
    package.name
    for package in pkgutil.walk_packages(sa.__path__, "sparsact.")
    if package.ispkg and not any(part in package.name for part in LEFT_OUT)
)
MODULES = ("sparsact.hypercube", "sparsact.network")  # that users import themselves


def signatures():
    """Every public function, constructor and method of the package by its name, with the object that it belongs to."""
    found = {}
    for module in map(import_module, ["sparsact", *FOLDERS, *MODULES]):
        for name in getattr(module, "__all__", vars(module)):
            thing = getattr(module, name)
            if not getattr(thing, "__module__", "").startswith("sparsact") or not hasattr(thing, "__qualname__"):
                continue  # modules and values
            place = f"{thing.__module__}.{thing.__qualname__}"
            if inspect.isfunction(thing) or (inspect.isclass(thing) and not issubclass(thing, Exception)):
                found[place] = (thing, inspect.signature(thing))
            if inspect.isclass(thing):
                found |= {f"{place}.{method}": (thing, its) for method, its in methods(thing)}
    return found


def methods(cls):
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        method = getattr(method, "__func__", method)
        ours = inspect.isfunction(method) and method.__module__.startswith("sparsact")
        if ours and (name == "__call__" or not name.startswith("_")):
            yield name, inspect.signature(method)


SIGNATURES = signatures()


def allowed(place, name):
    return any(place.startswith(start) and name in names.split() for start, (names, _) in EXCEPTIONS.items())


def test_the_walk_sees_every_kind_of_signature():
    assert len(SIGNATURES) > 400
    for place in (
        "sparsact.learners.lsh.regressor.LSHRegressor",
        "sparsact.routing.top_k.TopK",
        "sparsact.layers.switch.SwitchLayer",
        "sparsact.hardness.queries.MembershipOracle.__call__",
        "sparsact.fourier.transform.walsh_hadamard",
        "sparsact.inference.sparsifying.sparsify",
    ):
        assert place in SIGNATURES


def names_of(place, signature):
    return *signature.parameters, place.rpartition(".")[2]


def test_no_public_signature_has_a_former_name():
    found = [
        f"{place}, {name}: {BANNED[name]}"
        for place, (_, signature) in SIGNATURES.items()
        for name in names_of(place, signature)
        if name in BANNED and not allowed(place, name)
    ]
    assert not found, "\n".join(found)


def test_every_exception_is_needed():
    for start, (names, _) in EXCEPTIONS.items():
        for name in names.split():
            assert any(
                place.startswith(start) and name in names_of(place, its) for place, (_, its) in SIGNATURES.items()
            )


def test_generators_are_called_by_their_kind():
    for place, (_, signature) in SIGNATURES.items():
        for name, parameter in signature.parameters.items():
            kind = str(parameter.annotation)
            if "torch.Generator" in kind:
                assert name == "generator", place
            elif "np.random.Generator" in kind and "Callable" not in kind:
                assert name == "rng", place
            else:
                assert name not in ("rng", "generator"), place


def test_threads_are_jobs_of_estimators_only():
    for place, (thing, signature) in SIGNATURES.items():
        estimator = inspect.isclass(thing) and issubclass(thing, BaseEstimator)
        assert ("n_threads" if estimator else "n_jobs") not in signature.parameters, place


def test_no_option_has_a_former_name():
    command = get_command(app)
    options = {name: {o for p in one.params for o in p.opts} for name, one in command.commands.items()}
    assert {"--random-state", "--n-threads"} <= set.union(*options.values())
    for name, given in options.items():
        letters = {"--s", "--k"} if name == "bounds" else set()  # formulas
        assert not given - letters & {f"--{former.replace('_', '-')}" for former in BANNED}, name
