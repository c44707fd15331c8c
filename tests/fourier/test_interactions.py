"""Interaction indices: their definitions by brute force, shapiq, faithful fits by least squares, and conversions."""

from fractions import Fraction
from itertools import chain, combinations, permutations
from math import factorial
from types import SimpleNamespace

import numpy as np
import pytest

from sparsact import constructions
from sparsact.fourier import Interactions, Spectrum, interactions
from sparsact.fourier.interactions import INDICES
from sparsact.hypercube import points


def subsets(players):
    players = tuple(players)
    return chain.from_iterable(combinations(players, size) for size in range(len(players) + 1))


def function(n, seed, degree=None):
    """A table of integers, dense and as a list of few coefficients: both storages."""
    table = np.random.default_rng(seed).integers(-20, 20, 2**n).astype(float)
    dense = Spectrum.of(table)
    return dense if degree is None else dense.truncate(degree).to_sparse()


def game(spectrum, point, reference):
    """v(U), by its definition."""
    n = spectrum.n

    def value(present):
        x = np.where(np.isin(np.arange(n), list(present)), point, reference)
        return float(spectrum(x[None])[0])

    return {subset: value(subset) for subset in subsets(range(n))}


def mean_game(spectrum, point):
    n, cube = spectrum.n, points(spectrum.n)
    values = spectrum(cube)
    return {
        U: float(values[(cube[:, list(U)] == np.asarray(point)[list(U)]).all(axis=1)].mean()) for U in subsets(range(n))
    }


def derivative(v, T, U):
    """What T changes beyond its subsets, where U is present."""
    return sum((-1) ** (len(T) - len(L)) * v[tuple(sorted({*U, *L}))] for L in subsets(T))


def by_definition(v, n, index, T, order):
    others = list(subsets(set(range(n)) - set(T)))
    if not T:
        return v[()]
    if index == "Moebius":
        return derivative(v, T, ())
    if index == "BII":
        return np.mean([derivative(v, T, U) for U in others])
    if index == "SII":
        weights = [
            Fraction(factorial(len(U)) * factorial(n - len(U) - len(T)), factorial(n - len(T) + 1)) for U in others
        ]
        return sum(float(w) * derivative(v, T, U) for w, U in zip(weights, others, strict=True))
    assert index == "STII"
    if len(T) < order:
        return derivative(v, T, ())
    orders = list(permutations(range(n)))  # the mean over all orders of arrival, of T beyond those before any of it
    return np.mean([derivative(v, T, tuple(sorted(p[: min(map(p.index, T))]))) for p in orders])


CASES = [(function(5, 1), None), (function(5, 2, degree=2), None), (function(6, 3, degree=3), None)]


@pytest.mark.parametrize("spectrum", [case[0] for case in CASES], ids=repr)
@pytest.mark.parametrize(("index", "order"), [("Moebius", None), ("BII", 2), ("SII", 1), ("SII", 3), ("STII", 2)])
def test_definitions(spectrum, index, order):
    n, rng = spectrum.n, np.random.default_rng(7)
    reference, point = rng.choice([-1, 1], n), rng.choice([-1, 1], n)
    games = {
        "opposite": (interactions(spectrum, index, order, reference=reference), game(spectrum, -reference, reference)),
        "some equal": (
            interactions(spectrum, index, order, reference=reference, point=point),
            game(spectrum, point, reference),
        ),
        "mean": (interactions(spectrum, index, order, point=point, measure="uniform"), mean_game(spectrum, point)),
    }
    for found, v in games.values():
        assert found.order == (order or n)
        for T in subsets(range(n)):
            expected = by_definition(v, n, index, T, order) if len(T) <= found.order else 0
            assert found[T] == pytest.approx(expected, abs=1e-9), T


@pytest.mark.parametrize("order", [1, 2, 3])
def test_faithful_values_are_least_squares_fits(order):
    """Fits of the game by a polynomial: all sets alike (FBII), or by Shapley's weights with both ends exact (FSII)."""
    spectrum, n = function(6, 5), 6
    v = game(spectrum, -np.ones(n), np.ones(n))
    coalitions, terms = list(v), [T for T in subsets(range(n)) if len(T) <= order]
    features = np.array([[float(set(T) <= set(U)) for T in terms] for U in coalitions])
    y = np.array(list(v.values()))
    free = np.linalg.lstsq(features, y, rcond=None)[0]
    banzhaf = interactions(spectrum, "FBII", order)
    assert [banzhaf[T] for T in terms] == pytest.approx(free)
    weights = np.array(
        [
            1 / (factorial(n) // factorial(len(U)) // factorial(n - len(U)) * len(U) * (n - len(U)))
            if 0 < len(U) < n
            else 1e9
            for U in coalitions
        ]
    )
    root = np.sqrt(weights)
    shapley = np.linalg.lstsq(features * root[:, None], y * root, rcond=None)[0]
    found = interactions(spectrum, "FSII", order)
    assert [found[T] for T in terms] == pytest.approx(shapley, rel=1e-4, abs=1e-4)
    assert sum(found.values) == pytest.approx(v[tuple(range(n))])


def test_efficiency_and_shapley_values():
    spectrum = function(7, 8)
    ends = spectrum(np.stack([np.ones(7), -np.ones(7)]))
    shapley = interactions(spectrum, "SII", 1)
    assert shapley.baseline == pytest.approx(ends[0])
    assert sum(shapley.values) == pytest.approx(ends[1])
    assert sum(interactions(spectrum).values) == pytest.approx(ends[1])
    assert sum(interactions(spectrum, "STII", 3).values) == pytest.approx(ends[1])


@pytest.mark.parametrize(
    "spectrum", [function(6, 1), function(9, 2, degree=3), Spectrum.of({(0, 70): 2.0, (3,): -1.0}, n=90)]
)
def test_there_and_back_by_any_reference(spectrum):
    reference = np.random.default_rng(0).choice([-1, 1], spectrum.n)
    found = interactions(spectrum, reference=reference)
    back = found.spectrum()
    for subset, value in (*spectrum.items(), *back.items()):
        assert back[subset] == pytest.approx(spectrum[subset], abs=1e-9 * max(1, abs(value)))


def test_both_storages_agree():
    dense = function(8, 3).truncate(3)
    for index in INDICES:
        one, other = (
            interactions(f, index, 3, measure="uniform", point=[1, -1] * 4) for f in (dense, dense.to_sparse())
        )
        two, another = (interactions(f, index, 3) for f in (dense, dense.to_sparse()))
        for T in subsets(range(8)):
            assert one[T] == pytest.approx(other[T], abs=1e-9)
            assert two[T] == pytest.approx(another[T], abs=1e-9)


def test_background_averaged_epistasis_is_the_spectrum():
    spectrum = function(5, 4)
    banzhaf = interactions(spectrum, "BII", 5)
    for T in subsets(range(5)):
        if T:
            assert banzhaf[T] == pytest.approx((-2.0) ** len(T) * spectrum[T])


def test_a_network_and_what_is_shown():
    network = constructions.indexing(2)
    found = interactions(network, "BII", 2)
    assert found.n == network.n
    assert repr(found) == "<Interactions of 6 coordinates against the reference, BII up to order 2>"
    assert len(found.top(3)) == 3
    assert all(len(subset) == 2 for subset, _ in found.top(3, min_order=2))
    assert dict(found.items())[()] == found.baseline


def test_inputs_stay_as_they_are():
    spectrum, reference = function(5, 9), np.array([1, -1, 1, 1, -1])
    before = spectrum.coefficients.copy()
    interactions(spectrum, "SII", reference=reference)
    assert (spectrum.coefficients == before).all()
    assert reference.tolist() == [1, -1, 1, 1, -1]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"index": "Shapley"}, "`index` must be one of Moebius, BII"),
        ({"order": 6}, "`order` must lie between 1 and 5; got 6"),
        ({"reference": [1, 0, 1, 1, 1]}, "signs .1 and -1; row 0, column 1 holds 0"),
        ({"measure": "uniform"}, "with `measure` pass `point`"),
        ({"point": [1, 1]}, "5 columns"),
    ],
)
def test_bad_input(options, line):
    with pytest.raises(ValueError, match=line):
        interactions(function(5, 1), **options)


def test_what_determines_no_function():
    with pytest.raises(ValueError, match="only Moebius coefficients of every order"):
        interactions(function(4, 1), "SII").spectrum()
    with pytest.raises(ValueError, match="only Moebius coefficients of every order"):
        interactions(function(4, 1), point=[1, 1, -1, -1]).spectrum()


class TestShapiq:
    """The reference implementation of these indices; an optional package, which the extra ``peers`` brings."""

    @pytest.mark.parametrize(("index", "order"), [("SII", 2), ("BII", 3), ("STII", 2), ("FSII", 2), ("FBII", 3)])
    def test_the_same_values(self, index, order):
        shapiq = pytest.importorskip("shapiq", reason="shapiq is not installed: pip install '.[peers]'")
        spectrum = function(6, 11)
        computer = shapiq.ExactComputer(lambda X: spectrum(1 - 2 * np.asarray(X, dtype=int)), n_players=6)
        theirs, ours = computer(index, order), interactions(spectrum, index, order)
        for T, place in theirs.interaction_lookup.items():
            if T:
                assert ours[T] == pytest.approx(
                    theirs.values[place], abs=1e-6
                )  # theirs weighs the ends of a fit by 1e6

    @pytest.mark.parametrize("index", INDICES)
    def test_every_index_and_order_there_and_back(self, index):
        pytest.importorskip("shapiq", reason="shapiq is not installed: pip install '.[peers]'")
        for order in range(1, 5):
            ours = interactions(function(4, 13), index, order)
            back = Interactions.from_shapiq(ours.to_shapiq())
            assert back.order == order
            assert dict(back.items()) == pytest.approx(dict(ours.items()))

    @pytest.mark.parametrize("name", ["SV", "BV"])
    def test_names_of_order_one(self, name):
        """Shapley values of v({0}) = 2, v({1}) = 1, v(both) = 6 by hand: 3.5 and 2.5; two players have the same BV."""
        theirs = SimpleNamespace(
            n_players=2,
            index=name,
            max_order=1,
            interaction_lookup={(): 0, (0,): 1, (1,): 2},
            values=[0.0, 3.5, 2.5],
            baseline_value=0.0,
        )
        read = Interactions.from_shapiq(theirs)
        assert (read[(0,)], read[(1,)], read.order) == (3.5, 2.5, 1)
        ours = interactions([0.0, 2.0, 1.0, 6.0], read.index, 1)
        assert [ours[(i,)] for i in range(2)] == [3.5, 2.5]

    def test_there_and_back(self):
        pytest.importorskip("shapiq", reason="shapiq is not installed: pip install '.[peers]'")
        spectrum = function(6, 12, degree=2)
        ours = interactions(spectrum)
        theirs = ours.to_shapiq()
        assert (theirs.index, theirs.n_players, theirs.baseline_value) == ("Moebius", 6, ours.baseline)
        assert theirs[(0, 1)] == ours[(0, 1)]
        back = Interactions.from_shapiq(theirs)
        assert dict(back.items()) == dict(ours.items())
        assert (back.index, back.order) == ("Moebius", 6)
