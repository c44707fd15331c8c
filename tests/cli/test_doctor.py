"""``sparsact doctor``: what it says of this installation is what other sources say."""

import importlib.metadata
import json
import os

import commands
import numpy as np
import pytest

from sparsact.cli import doctor
from sparsact.extras import install
from sparsact.memory import total_memory


def test_it_says_what_is_installed(capsys):
    status, out, err = commands.run(capsys, "doctor", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found["versions"]["numpy"] == np.__version__
    assert found["machine"]["cores"] == os.cpu_count()
    assert f"of {total_memory() / 2**30:.1f} GiB" in found["machine"]["memory"]
    declared = importlib.metadata.metadata("sparsact").get_all("Provides-Extra")
    assert set(found["extras"]) <= set(declared)


def test_what_is_missing_comes_with_the_remedy(capsys, monkeypatch):
    def version(name):
        if name == "matplotlib":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(doctor, "version", version)
    _, out, _ = commands.run(capsys, "doctor")
    lines = " ".join(out.split())
    assert f"extra report lacks matplotlib: {install('report')}" in lines
    assert "extra cli installed" in lines


@pytest.mark.grid
@pytest.mark.parametrize("kernels", ["reference", ""])
def test_slow_kernels_are_named(kernels):
    found = json.loads(commands.process("doctor", "--json", SPARSACT_KERNELS=kernels).stdout)
    slow = found["versions"]["kernels"] == "reference (NumPy)"
    assert slow or kernels == ""
    assert any("kernels are NumPy's" in advice for advice in found["advice"]) == slow


def test_packages_of_an_extra(monkeypatch):
    """Those with extras of their own too, and none by way of another extra."""
    lines = [
        'dask[array,dataframe]>=2024.8; extra == "dask"',
        'sparsact[table]; extra == "dask"',
        'rich; extra == "cli"',
    ]
    monkeypatch.setattr(doctor, "requires", lambda _: lines)
    assert doctor._packages("dask") == ["dask"]
