from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest
from grids import grid
from instruction_sets import against_reference
from threadpoolctl import threadpool_limits

from sparsact import kernels
from sparsact.kernels.dispatch import reference, threads

DTYPES = (np.float32, np.float64, np.int32, np.int64)


def table_of(rows: int, n: int, dtype: type, offset: int = 0) -> np.ndarray:
    """A random table that starts `offset` entries after a multiple of 64 bytes; its entries are the same for all."""
    entries = np.random.default_rng(n).standard_normal(rows * 2**n) * 1000
    memory = np.empty(entries.size + 64, dtype)
    table = memory[-memory.ctypes.data % 64 // memory.itemsize + offset :][: entries.size]
    table[...] = entries
    return table.reshape(rows, -1)


@lru_cache(maxsize=200)  # every backend is compared with it, at every alignment and number of threads
def expected(rows: int, n: int, dtype: type) -> np.ndarray:
    table = table_of(rows, n, dtype)
    reference.walsh_hadamard(table, 1)
    return table


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    yield
    expected.cache_clear()


def agree(rows: int, n: int, dtype: type, n_threads: int, offset: int = 0) -> None:
    actual = table_of(rows, n, dtype, offset)
    kernels.walsh_hadamard(actual, n_threads=n_threads)
    assert actual.tobytes() == expected(rows, n, dtype).tobytes()


@against_reference
@grid(dtype=DTYPES, n=range(14))
def test_equals_reference_to_the_bit(backend, dtype, n):
    for rows in (1, 3, 37):
        agree(rows, n, dtype, n_threads=1)


@pytest.mark.grid
@against_reference
@grid(dtype=DTYPES, n=[16, 17, 18, 20])
def test_equals_reference_beyond_each_cache(backend, dtype, n):
    agree(1, n, dtype, n_threads=1)


@pytest.mark.grid
@against_reference
@pytest.mark.parametrize(("n", "dtype"), [(22, np.float64), pytest.param(23, np.float32, marks=pytest.mark.slow)])
def test_equals_reference_where_memory_is_the_limit(backend, n, dtype):
    agree(1, n, dtype, n_threads=1, offset=1)


@grid(dtype=DTYPES, offset=[1, 2, 3, 4, 7])
def test_any_alignment(backend, dtype, offset):
    for n in (3, 9, 12, 16):
        agree(3, n, dtype, n_threads=1, offset=offset)


@grid(dtype=DTYPES, n_threads=[2, 3, 0], sizes=[(1, 17), (3, 16), (61, 11), (9001, 3), (70001, 0)])
def test_any_number_of_threads(backend, dtype, n_threads, sizes):
    agree(*sizes, dtype, n_threads)


def test_neighbours_of_the_table_are_untouched(backend):
    for n in (2, 5, 13):
        memory = np.full(3 * 2**n + 2, 7.0)
        kernels.walsh_hadamard(memory[1:-1].reshape(3, -1), n_threads=1)
    assert memory[0] == memory[-1] == 7.0


def test_none_obeys_threadpoolctl(backend):
    with threadpool_limits(1, user_api="openmp"):
        agree(1, 17, np.float64, threads(None))
