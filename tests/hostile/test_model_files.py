"""Model files of every kind, altered at random and signed anew: refused by name, or a model that does no harm."""

from __future__ import annotations

from random import Random

import pytest
from hostile.memory import little_memory
from hostile.model_files import load_and_use, originals
from hostile.mutations import damaged, mutated, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import registry

bounded = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
kinds = st.integers(0, 1_000)  # modulo how many there are
# Random numbers by a seed: examples are then spread evenly, and a failing one is named by two numbers.
seeds = st.integers(0, 2**40)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    return originals(tmp_path_factory.mktemp("originals"))


def altered(contents, kind, seed):
    """Bytes of a file of that kind, changed in what it says; None where no file can say so."""
    everything, random = list(contents.values()), Random(seed)
    try:
        return mutated(everything[kind % len(everything)], everything, random).signed()
    except (UnicodeEncodeError, OverflowError):
        return None


@pytest.mark.grid
def test_there_is_a_file_of_every_kind(contents, tmp_path):
    assert {content.kind for content in contents.values()} == set(registry.MODELS)
    for content in contents.values():
        assert load_and_use(write(tmp_path / "model", content.signed()))


def try_content(contents, path, kind, seed):
    content = altered(contents, kind, seed)
    if content is not None:
        with little_memory():
            load_and_use(write(path, content))


@pytest.mark.grid
@settings(bounded, max_examples=120)
@given(kind=kinds, seed=seeds)
def test_content_that_was_made_up(contents, tmp_path_factory, kind, seed):
    try_content(contents, tmp_path_factory.getbasetemp() / "made up", kind, seed)


@pytest.mark.slow
@settings(bounded, max_examples=10_000)
@given(kind=kinds, seed=seeds)
def test_much_content_that_was_made_up(contents, tmp_path_factory, kind, seed):
    try_content(contents, tmp_path_factory.getbasetemp() / "made up", kind, seed)


@pytest.mark.grid
@settings(bounded, max_examples=120)
@given(kind=kinds, seed=seeds)
def test_damaged_bytes(contents, tmp_path_factory, kind, seed):
    whole = list(contents.values())[kind % len(contents)].signed()
    path = tmp_path_factory.getbasetemp() / "damaged"
    with little_memory():
        load_and_use(write(path, damaged(whole, Random(seed))))
