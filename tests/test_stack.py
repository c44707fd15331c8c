"""Stack: values, exact active units, certificates, file, and the spectrum; all against fractions, point by point."""

from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from stacks import KINDS, by_definition, gated_stack, random_stack

import sparsact as sa
from sparsact.certificate import certify_stack
from sparsact.fourier import Spectrum, average_sensitivity, estimate_average_sensitivity
from sparsact.hypercube import points
from sparsact.saving import modelfile

SIZES, N = (4, 3, 5), 6


@pytest.mark.grid
@grid(kind=KINDS, reads_inputs=[True, False])
def test_values_and_active_units_are_those_of_the_definition(kind, reads_inputs):
    rng = np.random.default_rng(KINDS.index(kind))
    n_ties = 0
    for _ in range(4):
        stack, X = random_stack(kind, SIZES, N, rng, reads_inputs=reads_inputs), points(N)[rng.permutation(2**N)[:17]]
        before, found, counts, values = X.copy(), stack.active(X), stack.n_active(X), stack(X)
        for row, x in enumerate(X):
            value, outputs = by_definition(stack, x)
            assert values[row] == pytest.approx(float(value), rel=1e-9, abs=1e-9)
            for layer, a in enumerate(outputs):
                assert found[layer][row].tolist() == [each > 0 for each in a]
                assert counts[row, layer] == sum(each > 0 for each in a)
        n_ties += sum(int((z == 0).sum()) for z in stack.preactivations(X))
        np.testing.assert_array_equal(X, before)
    assert kind in ("reals", "tenths", "far") or n_ties > 20


def test_a_tie_of_tenths_in_the_second_layer_is_decided_exactly():
    """0.1 + 0.2 - 0.3 of the numbers stored is above 0, although of the rounded outputs it may not be."""
    first = ([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]], [0.0, 0.0, 0.0])
    stack = sa.Stack([1.0, 1.0], [first, ([[1, 1, -1], [-1, -1, 1]], [0, 0])])
    exact = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert exact > 0
    np.testing.assert_array_equal(stack.active([[1, 1]])[1], [[True, False]])


def test_real_inputs_are_legal():
    rng = np.random.default_rng(3)
    stack, X = random_stack("reals", SIZES, N, rng), np.round(rng.normal(size=(19, N)), 1)
    found = stack.active(X)
    for row, x in enumerate(X):
        value, outputs = by_definition(stack, x)
        assert stack(X[row : row + 1])[0] == pytest.approx(float(value), abs=1e-12)
        assert [each[row].tolist() for each in found] == [[a > 0 for a in layer] for layer in outputs]


def test_one_layer_is_a_network():
    stack = random_stack("integers", (7,), N, np.random.default_rng(2))
    network = sa.SparselyActivatedNetwork(stack.u, stack.layers[0].W, stack.layers[0].b)
    X = points(N)
    np.testing.assert_allclose(stack(X), network(X), atol=1e-13)
    np.testing.assert_array_equal(stack.n_active(X)[:, 0], network.n_active(X))
    assert stack.certify().layers[0].distribution == network.certify().distribution


def test_a_row_without_points_and_a_stack_without_units():
    stack = random_stack("reals", (4, 3), N, np.random.default_rng(0))
    assert stack(np.zeros((0, N))).shape == (0,)
    assert [each.shape for each in stack.active(np.zeros((0, N)))] == [(0, 4), (0, 3)]
    nothing = sa.Stack([], [(np.zeros((0, 3)), [])])
    assert nothing([[1, 1, 1]]).tolist() == [0.0]
    assert nothing.certify().upper == (0,)
    assert nothing.certify("milp").upper == (0,)


@pytest.mark.parametrize(
    ("u", "layers", "message"),
    [
        ([1.0], [], "at least one layer"),
        ([1.0], [([[1, 2]],)], r"layer 1 must be \(W, b\) or \(W, b, V\); got 1 part"),
        ([1.0], [([[1, 2]], [0], [[1, 2]])], "layer 1 reads the inputs by `W`"),
        ([1.0], [([[1, 2]], [0, 1])], r"must agree on s; got \(1, 2\) and \(2,\)"),
        ([1.0], [([[1, 2]], [0]), ([[1, 2]], [0])], r"layer 2 needs `W` of shape \(1, 1\)"),
        ([1.0], [([[1, 2]], [0]), ([[1]], [0], [[1]])], r"`V` of shape \(1, 2\) or none; got \(1, 1\) and \(1, 1\)"),
        ([1.0, 2], [([[1, 2]], [0])], "one weight a unit"),
        ([1.0], [([[1, np.nan]], [0])], "`W` of layer 1 must be finite"),
        ([1.0], [([[1e200]], [0]), ([[1e200]], [0])], "overflow"),
        ([1e200], [([[1e200]], [0])], "overflow"),
        ([1.0], [(np.zeros((1, 0)), [0])], "needs a column at least"),
    ],
)
def test_what_is_no_stack_is_refused(u, layers, message):
    with pytest.raises(ValueError, match=message):
        sa.Stack(u, layers)


def test_a_file_holds_the_stack(tmp_path):
    for reads_inputs in (True, False):
        stack = random_stack("reals", SIZES, N, np.random.default_rng(1), reads_inputs=reads_inputs)
        stack.save(tmp_path / "stack.sparsact")
        read = sa.load(tmp_path / "stack.sparsact")
        assert read == stack
        assert hash(read) == hash(stack)
        assert read != sa.Stack(stack.u + 1, stack.layers)
        assert repr(read) == "<Stack of 3 layers, 4 + 3 + 5 units on 6 inputs>"


@pytest.mark.parametrize("depth", [0, -1, 2, 10**9])
def test_a_file_that_promises_other_layers_is_refused(tmp_path, depth):
    stack = random_stack("reals", (4, 3, 5), N, np.random.default_rng(1))
    stack.save(tmp_path / "a")
    _, _, arrays = modelfile.read(tmp_path / "a")
    modelfile.write(tmp_path / "b", "Stack", {"depth": depth}, arrays)
    with pytest.raises(modelfile.ModelFileError):
        sa.load(tmp_path / "b")


def test_the_numbers_cannot_be_changed():
    stack = random_stack("reals", (4, 3), N, np.random.default_rng(1))
    for array in (stack.u, stack.layers[1].V):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_spectrum_matches_all_values():
    stack = random_stack("eighths", (5, 4), 13, np.random.default_rng(4))  # more inputs than are done at once
    spectrum = Spectrum.of(stack)
    values = stack(points(13))
    assert spectrum.total_influence() == pytest.approx(average_sensitivity(values))
    np.testing.assert_allclose(spectrum(points(13)), values, atol=1e-9)
    estimate = estimate_average_sensitivity(stack, n_samples=4000, rng=np.random.default_rng(0))
    # Six standard errors: a failure by chance has probability below 1e-7, and the seed is fixed.
    assert abs(estimate.value - spectrum.total_influence()) < 6 * estimate.standard_error
    with pytest.raises(ValueError, match="at most 24 inputs; got 25"):
        Spectrum.of(sa.Stack([1.0], [(np.ones((1, 25)), [0.0])]))


# ---- certificates ----


def most_by_definition(stack):
    counts = np.array([[sum(a > 0 for a in layer) for layer in by_definition(stack, x)[1]] for x in points(stack.n)])
    return tuple(counts.max(axis=0).tolist()), int(counts.sum(axis=1).max())


@pytest.mark.grid
@grid(kind=KINDS, seed=range(2))
def test_certificates_hold(kind, seed):
    """Counted everywhere, by fractions; what is proved without is no less, and exact if it says so."""
    stack = random_stack(kind, (4, 5, 3), 5, np.random.default_rng(seed))
    most, total = most_by_definition(stack)
    everywhere, proved = stack.certify("enumeration"), stack.certify("milp", time_limit=20)
    assert everywhere.exact
    assert (everywhere.max_active, everywhere.whole.max_active) == (most, total)
    for certificate in (everywhere, proved):
        for layer, part in enumerate(certificate.layers):
            assert part.max_active == int(stack.n_active(part.witness[None])[0, layer])
            assert part.max_active <= most[layer] <= part.upper
            assert part.distribution is None or sum(part.distribution) == 2**5
        assert int(stack.n_active(certificate.whole.witness[None]).sum()) == certificate.whole.max_active
        assert certificate.whole.max_active <= total <= certificate.whole.upper
        if certificate.exact:
            assert certificate.max_active == most
    if kind == "integers":  # ties are told from active units, so that nothing is left open
        assert proved.exact


@pytest.mark.parametrize(("n", "depth", "k", "address"), [(40, 3, 1, 2), (33, 2, 2, 2), (300, 3, 1, 3)])
def test_gated_stacks_are_proved_sparse_at_any_n(n, depth, k, address):
    certificate = gated_stack(n, depth, k, address, np.random.default_rng(n)).certify(time_limit=30)
    assert certificate.upper == (k,) * depth
    assert "gates on the inputs" in str(certificate)


def test_gates_on_the_layer_below_are_proved_by_the_program():
    """Parities of two pairs choose one of four units; nothing but the layers together shows that one is on."""
    n, pairs = 28, ((3, 20), (11, 5))
    W = np.zeros((4, n))
    for t, (i, j) in enumerate(pairs):
        W[2 * t, [i, j]], W[2 * t + 1, [i, j]] = 1, -1
    signs = points(2)
    V = np.random.default_rng(0).integers(-2, 3, (4, n)) / 8
    gate = np.abs(V).sum(axis=1).max()
    A = 2 * gate * np.repeat(signs, 2, axis=1)
    stack = sa.Stack(np.ones(4), [(W, np.ones(4)), (A, gate * (signs.sum(axis=1) + 2), V)])
    certificate = stack.certify(time_limit=30)
    assert certificate.layers[0].exact
    assert certificate.max_active == certificate.upper == (2, 1)
    assert "mixed-integer programming" in certificate.layers[1].proof


def test_without_time_bounds_still_hold():
    stack = random_stack("reals", (6, 5), 27, np.random.default_rng(0))
    certificate = stack.certify(time_limit=0.0)
    assert all(part.max_active <= part.upper <= size for part, size in zip(certificate.layers, (6, 5), strict=True))


def test_a_sample_bounds_how_often_more_are_active():
    """200 samples of 30 points: each bound fails with probability 2 %, so more than 15 fail with less than 1e-5."""
    stack = random_stack("reals", (6, 5), 8, np.random.default_rng(7))
    counts = stack.n_active(points(8))
    failures = 0
    for seed in range(200):
        certificate = stack.certify("sampled", n_samples=30, confidence=0.98, rng=np.random.default_rng(seed))
        parts = [*certificate.layers, certificate.whole]
        shares = [
            np.mean(each > part.at_most) for each, part in zip((*counts.T, counts.sum(axis=1)), parts, strict=True)
        ]
        failures += any(share > part.exceed_bound for share, part in zip(shares, parts, strict=True))
    assert failures <= 15


def test_what_cannot_be_certified():
    stack = random_stack("reals", (4, 3), 25, np.random.default_rng(0))
    with pytest.raises(ValueError, match="up to 24 inputs; there are 25"):
        stack.certify("enumeration")
    with pytest.raises(ValueError, match="`method` must be one of"):
        stack.certify("orbits")
    with pytest.raises(ValueError, match="`time_limit` must be 0 or more seconds"):
        stack.certify("milp", time_limit=-1)
    with pytest.raises(TypeError, match="certify_stack takes a Stack; got SparselyActivatedNetwork"):
        certify_stack(stack.first)
    with pytest.raises(TypeError, match="certify_stack for a Stack"):
        sa.certify(stack)
