"""What every router promises, whatever its rule: on NumPy arrays and on torch tensors."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from grids import grid
from routed import KINDS, ROUTERS, BySign, D, inputs, made, plain, state_of

from sparsact import routing
from sparsact.routing import EMPTY, Selection

routers = pytest.mark.parametrize("router", ROUTERS, ids=repr)
# Quick are one without a state and one with it.
compiled_routers = pytest.mark.parametrize(
    "router",
    [pytest.param(r, marks=() if r in (ROUTERS[0], ROUTERS[2]) else pytest.mark.slow) for r in ROUTERS],
    ids=repr,
)
modes = pytest.mark.parametrize("training", [False, True])


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """A router of another package may be registered by its name."""
    monkeypatch.setitem(routing.ROUTERS, BySign.name, BySign)


FIELDS = ("indices", "weights", "logits", "auxiliary_loss", "counts", "dropped")


def selection(router, kind, training=False, x=None):
    state = {name: made(value, kind) for name, value in state_of(router).items()}
    return router(made(inputs() if x is None else x, kind), state, training=training)


def depends_on_batch(router):
    """Whether an input is routed by the others of its batch."""
    return isinstance(router, routing.ExpertChoice) or getattr(router, "eval_capacity_factor", None) is not None


def equal(one: Selection, other: Selection, tolerance: float) -> None:
    for field in FIELDS:
        a, b = getattr(one, field), getattr(other, field)
        assert (a is None) == (b is None)
        if a is None:
            continue
        a, b = plain(a), plain(b)
        assert a.shape == b.shape, field
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=field)
        else:
            np.testing.assert_array_equal(a, b, err_msg=field)


@routers
@grid(kind=KINDS, training=[False, True])
def test_a_selection_has_the_shapes_that_it_promises(router, kind, training):
    chosen = selection(router, kind, training)
    m, k = plain(chosen.indices).shape
    units, weights, counts = plain(chosen.indices), plain(chosen.weights), plain(chosen.counts)
    assert m == len(inputs())
    assert chosen.n_units == router.width(D)
    assert k == router.max_active(D) or (training and isinstance(router, routing.Tree) and k == chosen.n_units)
    assert units.dtype == counts.dtype == np.int64
    assert weights.shape == (m, k)
    assert str(weights.dtype) == kind[1]
    assert plain(chosen.dropped).dtype == bool
    assert plain(chosen.auxiliary_loss).shape == ()
    assert ((units >= 0) & (units < chosen.n_units) | (units == EMPTY)).all()
    assert (weights[units == EMPTY] == 0).all()
    for row in units:
        assert len(set(row[row != EMPTY])) == (row != EMPTY).sum()
        assert (np.diff(row[row != EMPTY]) > 0).all()
    taken = np.bincount(units[units != EMPTY], minlength=chosen.n_units)
    assert (counts >= taken).all()
    lost = (units == EMPTY).any(axis=1)
    if not isinstance(router, routing.Interpolation | routing.ExpertChoice):
        np.testing.assert_array_equal(plain(chosen.dropped), lost)
        assert counts.sum() - taken.sum() == (units == EMPTY).sum()
    assert type(chosen.indices) is type(made(inputs(), kind))


@routers
@modes
def test_numpy_and_torch_agree(router, training):
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
        of_numpy, of_torch = (selection(router, (library, dtype), training) for library in (np, torch))
        equal(of_numpy, of_torch, tolerance)
    equal(selection(router, (np, "float32"), training), selection(router, (np, "float64"), training), 1e-5)


@routers
def test_without_a_state_the_seed_makes_it(router):
    x = inputs()
    equal(router(x), router(x), 0)
    equal(router(x), router(torch.tensor(x)), 1e-12)


@compiled_routers
def test_compiles_without_graph_breaks(router):
    torch._dynamo.reset()
    state = {name: torch.tensor(value) for name, value in state_of(router).items()}
    x = torch.tensor(inputs())
    compiled = torch.compile(router.select, fullgraph=True, backend="eager")
    equal(compiled(x, state), router.select(x, state), 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # within inductor
@routers
def test_compiled_code_chooses_the_same(router):
    """With inductor's C++: whole numbers that wrap must wrap there too."""
    torch._dynamo.reset()
    state = {name: torch.tensor(value) for name, value in state_of(router).items()}
    x = torch.tensor(inputs())
    equal(torch.compile(router.select, fullgraph=True)(x, state), router.select(x, state), 1e-12)


@pytest.mark.grid
@compiled_routers
def test_compiles_for_training_on_batches_of_any_size(router):
    torch._dynamo.reset()
    state = {name: torch.tensor(value) for name, value in state_of(router).items()}
    compiled = torch.compile(router.select, fullgraph=True, backend="eager", dynamic=True)
    for m in (37, 2):
        x = torch.tensor(inputs(m))
        equal(compiled(x, state, training=True), router.select(x, state, training=True), 0)


@routers
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_decides_as_single_precision_does(router, dtype):
    x = torch.tensor(np.round(8 * inputs()) / 8, dtype=dtype)  # exact in either
    state = {name: torch.tensor(np.round(4 * value) / 4, dtype=dtype) for name, value in state_of(router).items()}
    wide = {name: value.float() for name, value in state.items()}
    half, single = router.select(x, state), router.select(x.float(), wide)
    assert half.weights.dtype == dtype
    assert torch.equal(half.indices, single.indices)
    torch.testing.assert_close(half.weights.float(), single.weights, rtol=1e-2, atol=1e-2)


@routers
def test_autocast_has_no_say(router):
    x, state = torch.tensor(inputs(), dtype=torch.float32), state_of(router)
    state = {name: torch.tensor(value, dtype=torch.float32) for name, value in state.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = router.select(x, state)
    equal(inside, router.select(x, state), 0)


@routers
@grid(kind=KINDS)
def test_an_empty_batch_has_an_empty_selection(router, kind):
    for training in (False, True):
        chosen = selection(router, kind, training, x=np.zeros((0, D)))
        assert plain(chosen.indices).shape[0] == plain(chosen.dropped).shape[0] == 0
        assert (plain(chosen.counts) == 0).all()
        assert plain(chosen.counts).shape == (router.width(D),)
        assert plain(chosen.auxiliary_loss) == 0
        assert plain(chosen.dense()).shape == (0, router.width(D))


@routers
def test_one_input_is_routed_as_in_a_batch(router):
    if depends_on_batch(router):
        pytest.skip("capacity is the batch's")
    state = state_of(router)
    whole = router(inputs(), state)
    for i in (0, 4, 36):
        one = router(inputs()[i : i + 1], state)
        np.testing.assert_array_equal(one.indices[0], whole.indices[i])
        np.testing.assert_allclose(one.weights[0], whole.weights[i], rtol=1e-12)


@routers
def test_inputs_of_any_layout_are_left_unchanged(router):
    state = state_of(router)
    wanted = router(inputs(), state)
    strided = np.asfortranarray(np.repeat(inputs(), 2, axis=1))[:, ::2]
    strided.setflags(write=False)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002 - that it is left alone
    for entry in state.values():
        entry.setflags(write=False)
    kept = {name: value.copy() for name, value in state.items()}
    equal(router(strided, state), wanted, 1e-12)
    equal(router(torch.tensor(inputs()).T.contiguous().T, state), wanted, 1e-12)
    np.testing.assert_array_equal(strided, inputs())
    for name, value in kept.items():
        np.testing.assert_array_equal(state[name], value)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])


@routers
def test_integers_lists_and_narrow_floats_are_numbers_too(router):
    whole = np.round(3 * inputs())
    state = state_of(router)
    wanted = router(whole, state)
    for x in (whole.astype(int), whole.tolist(), whole.astype(np.int8), torch.tensor(whole).long()):
        equal(router(x, state), wanted, 1e-12)
    for x in (whole.astype(np.float16), torch.tensor(whole).bfloat16()):
        np.testing.assert_array_equal(plain(router(x, state).indices), wanted.indices)


@routers
@pytest.mark.parametrize("library", [np, torch], ids=lambda library: library.__name__)
def test_what_is_no_input_is_refused(router, library):
    as_kind = torch.tensor if library is torch else np.asarray
    for value, row, column in ((np.nan, 3, 2), (np.inf, 0, 4)):
        x = inputs()
        x[row, column] = value
        with pytest.raises(ValueError, match=f"finite.*{row}.*{column}"):
            router(as_kind(x))
    for x in (inputs()[0], inputs()[None], np.zeros((3, 0))):
        with pytest.raises(ValueError, match="one row an input"):
            router(as_kind(x))
    with pytest.raises(ValueError, match="bits"):
        router(as_kind(inputs() > 0))
    with pytest.raises(ValueError, match="real"):
        router(as_kind(inputs() + 0j))
    sparse = (
        torch.tensor(inputs()).to_sparse()
        if library is torch
        else pytest.importorskip("scipy.sparse").csr_array(inputs())
    )
    with pytest.raises(ValueError, match="dense"):
        router(sparse)


@routers
def test_a_state_that_does_not_fit_is_refused(router):
    state = state_of(router)
    if not state:
        assert router.state_names == ()
        return
    assert set(state) == set(router.state_names)
    assert set(router.trainable) <= set(state)
    first = router.state_names[0]
    with pytest.raises(ValueError, match=first):
        router(inputs(), {})
    with pytest.raises(ValueError, match=first):
        router(inputs(), {**state, first: state[first][..., :-1]})
    if not isinstance(router, routing.HashTable):  # a table says nothing of columns
        with pytest.raises(ValueError, match=r"shape|columns"):
            router(inputs(d=D + 1), state)
    with pytest.raises(ValueError, match="torch"):
        router(inputs(), {name: torch.tensor(value) for name, value in state.items()})


@routers
def test_dense_and_expand_say_the_same(router):
    for kind in KINDS:
        chosen = selection(router, kind)
        dense, units, weights = plain(chosen.dense()), plain(chosen.indices), plain(chosen.weights)
        wanted = np.zeros_like(dense)
        for i, row in enumerate(units):
            for j, unit in enumerate(row):
                if unit != EMPTY:
                    wanted[i, unit] = weights[i, j]
        np.testing.assert_array_equal(dense, wanted)
        wide = chosen.expand(3)
        np.testing.assert_array_equal(plain(wide.dense()), np.repeat(dense, 3, axis=1))
        np.testing.assert_array_equal(plain(wide.counts), np.repeat(plain(chosen.counts), 3))


@routers
def test_a_record_of_hyperparameters(router):
    again = routing.from_dict(json.loads(json.dumps(router.to_dict())))
    assert again == router
    assert hash(again) == hash(router)
    assert pickle.loads(pickle.dumps(router)) == router
    assert routing.ROUTERS[router.name] is type(router)
    assert (
        routing.named(**{("name" if key == "router" else key): value for key, value in router.to_dict().items()})
        == router
    )
    with pytest.raises(AttributeError):
        router.random_state = 3
    assert router.flops(D) > 0


def test_every_router_is_tested():
    assert {type(router) for router in ROUTERS} == set(routing.ROUTERS.values())


def test_numpy_integers_are_recorded_as_integers():
    router = routing.TopK(np.int64(3))
    assert json.dumps(router.to_dict()) == '{"router": "top_k", "n_active": 3, "absolute": false}'
    assert json.loads(json.dumps(routing.EuclideanLSH(2, np.float32(0.5)).to_dict()))["bucket_width"] == 0.5


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"router": "perceptron"}, "perceptron.*top_k"),
        ({"n_active": 3}, "router"),
        ("top_k", "router"),
        ({"router": ["top_k"]}, "router"),
        ({"router": "top_k", "n_active": 3, "colour": 1}, "colour"),
        ({"router": "top_k"}, "n_active"),
        ({"router": "top_k", "n_active": "3"}, "n_active.*integer"),
        ({"router": "top_k", "n_active": 3.0}, "n_active.*integer"),
        ({"router": "top_k", "n_active": True}, "n_active.*integer"),
        ({"router": "top_k", "n_active": 0}, "n_active.*1 or more"),
        ({"router": "top_k", "n_active": 3, "absolute": 1}, "absolute"),
        ({"router": "hyperplane_lsh", "n_hashes": 31}, "30"),
        ({"router": "hyperplane_lsh", "n_hashes": 3, "random_state": -1}, "random_state"),
        ({"router": "random_hash", "n_active": 3, "random_state": 2**64}, "random_state"),
        ({"router": "random_hash", "n_active": 3, "n_units": 2}, "3 of 2"),
        ({"router": "euclidean_lsh", "n_hashes": 3, "bucket_width": 0}, "bucket_width"),
        ({"router": "euclidean_lsh", "n_hashes": 3, "bucket_width": float("nan")}, "bucket_width"),
        ({"router": "euclidean_lsh", "n_hashes": 3, "bucket_width": "wide"}, "bucket_width"),
        ({"router": "switch", "n_experts": 3, "capacity_factor": 0}, "capacity_factor"),
        ({"router": "switch", "n_experts": 3, "load_balance": -1}, "load_balance"),
        ({"router": "switch", "n_experts": 0}, "n_experts"),
        ({"router": "nearest", "n_active": 3, "n_centres": 2}, "3 of 2"),
        ({"router": "tree", "depth": 25}, "24"),
        ({"router": "ngram_hash", "n_slots": 0}, "n_slots.*1 or more"),
        ({"router": "ngram_hash", "n_slots": 20}, "20 slots are too few for 4 tables"),
        ({"router": "ngram_hash", "n_slots": 99, "ngram": [3, 2]}, "ngram.*increasing"),
        ({"router": "ngram_hash", "n_slots": 99, "ngram": [0, 2]}, "ngram.*1 or more"),
        ({"router": "ngram_hash", "n_slots": 99, "ngram": 3}, "ngram.*increasing"),
        ({"router": "product_keys", "n_keys": 3, "n_active": 10}, "10 of 9"),
    ],
)
def test_records_that_make_no_router(record, complaint):
    with pytest.raises(ValueError, match=complaint):
        routing.from_dict(record)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0].__name__}-{kind[1]}")
def test_more_units_than_there_are(kind):
    for router in (routing.TopK(7), routing.TopK(7, absolute=True), routing.RandomHash(7)):
        with pytest.raises(ValueError, match=r"7.*6"):
            router(made(inputs(), kind))
    with pytest.raises(ValueError, match=r"6.*5"):
        routing.Nearest(6)(inputs(), routing.Nearest.state_of(inputs(5)))


def test_scores_that_overflow_are_no_answer():
    with pytest.raises(ValueError, match="overflow"):
        routing.HyperplaneLSH(3)(np.full((2, 3), 1e308) * [1, -1, 1])
