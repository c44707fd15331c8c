"""Settings of the whole test suite."""

import gc
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from areas import AREAS, ROOT, areas_of
from hypothesis import settings

# Processes of Dask are forks of one that has made the imports; Dask reads this when it is imported.
if sys.platform != "win32":
    os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

# A busy machine is no failure: time is limited per test by pytest-timeout instead.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("main", deadline=None, max_examples=40)  # of `make test-grids`, so of `.ci/run`
settings.register_profile("thorough", deadline=None, max_examples=400)  # of `make test-slow`
settings.load_profile("quick")


def pytest_addoption(parser):
    """Add the option that takes one area of the suite."""
    parser.addoption("--area", choices=AREAS, help="collect this area of the suite only; tests/areas.py lists them")


def pytest_ignore_collect(collection_path: Path, config):
    """Ignore files of other areas; one that belongs to none is collected always."""
    area = config.getoption("--area")
    found = areas_of(collection_path) if area and collection_path.is_file() else []
    return True if found and area not in found else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage, and never again look for it among the modules and items, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)  # at Python's 700, searches take 4 % of the suite, of figures a fifth
        gc.enable()


def together(path: Path):
    """What the tests of a file share with others that the same process runs: what torch makes once, parsed sources."""
    return "torch" if "torch" in areas_of(path) else "sources" if path.parent == ROOT / "tests" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the files that one process runs, for they take longest."""
    items.sort(key=lambda item: together(item.path) is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files at a time, and some to one process; the areas alone as usual."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return together(config.rootpath / file) or file

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" and not config.getoption("area") else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path):
    """Search for doctests only packages, which then are imported first, and files that hold a prompt.

    To search a module, all of its names are walked.
    """
    found = yield
    prompts = (
        file_path.suffix != ".py" or file_path.name == "__init__.py" or ">>>" in file_path.read_text(encoding="utf-8")
    )
    return found if prompts else [node for node in found if not isinstance(node, DoctestModule)]


@pytest.fixture
def unrendered(monkeypatch):
    """Figures of pages are plotted, but not rendered, which takes longest: for tests of all else on a page."""
    monkeypatch.setattr("sparsact.reports.figure.to_svg", lambda figure: '<svg viewBox="0 0 1 1"></svg>')


@contextmanager
def one_gaussian_process():
    """Default fits compare one Gaussian process, plain and warped, and ten trees."""
    from sparsact.fit.candidates import candidates
    from sparsact.fit.candidates.gp import ProcessCandidate
    from sparsact.fit.candidates.trees import TreesCandidate

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(candidates(), "gp", ProcessCandidate(kernels=("product",), warps=("normal scores",)))
        patch.setitem(candidates(), "trees", TreesCandidate({0: {8: 10}}))
        yield


@pytest.fixture(scope="module")
def few_rivals():
    """Fits of the module compare few models: for tests of all else about a fit."""
    with one_gaussian_process():
        yield


@pytest.fixture
def one_rival():
    """As ``few_rivals``, for one test."""
    with one_gaussian_process():
        yield
