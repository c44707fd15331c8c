"""Autoencoders read from the files of other libraries, beside what these compute, in plain torch."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

from sparsact.inference import Autoencoder, densify, load_sae, plan_of, sparsify  # noqa: E402
from sparsact.saving import ModelFileError  # noqa: E402

D, N, OUT, K = 24, 200, 17, 9


def parameters(out=D, seed=0):
    """Random tensors by the names of SAELens; about 5 % of features are on."""
    g = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=g)  # noqa: E731
    return {
        "W_enc": normal(D, N) / D**0.5,
        "b_enc": normal(N) * 0.3 - 2.0,
        "W_dec": normal(N, out),
        "b_dec": normal(out),
        "threshold": normal(N) * 0.3,  # some below 0
        "b_gate": normal(N) * 0.3 - 2.0,
        "r_mag": normal(N) * 0.3,
        "b_mag": normal(N) * 0.3,
        "W_skip": normal(out, D),
    }


def sae_lens(names, cfg):
    def write(folder, p):
        said = {"d_in": D, "d_sae": N, "apply_b_dec_to_input": False, "normalize_activations": "none"}
        said |= {"metadata": {"hook_name": "blocks.0.hook_resid_pre"}} | cfg
        (folder / "cfg.json").write_text(json.dumps({key: one for key, one in said.items() if one != "left out"}))
        save_file({name: p[name].contiguous() for name in names.split()}, folder / "sae_weights.safetensors")

    return write


def dictionary_learning(dict_class, names, **more):
    """``names`` are pairs, of the file's and SAELens's; weights of ``nn.Linear`` are transposed."""

    def write(folder, p):
        trainer = {"dict_class": dict_class, "activation_dim": D, "dict_size": N, "lr": 1e-3} | (
            {"k": int(more["k"])} if "k" in more else {}
        )
        (folder / "config.json").write_text(json.dumps({"trainer": trainer, "buffer": {"ctx_len": 128}}))
        pairs = [pair.split("=") for pair in names.split()]
        held = {name: p[one].t().contiguous() if name.endswith(".weight") else p[one] for name, one in pairs}
        torch.save(held | more, folder / "ae.pt")

    return write


def gemma_scope(folder, p):
    names = "W_enc", "b_enc", "W_dec", "b_dec", "threshold"
    np.savez(folder / "params.npz", **{name: p[name].numpy() for name in names})


# ---- what the libraries compute: features of x, and reconstructions ----


def less(p, x, centred):
    return x - p["b_dec"] if centred else x


def standard(p, x, centred=False):
    return (less(p, x, centred) @ p["W_enc"] + p["b_enc"]).relu()


def top_k(p, x, centred=False):
    values, places = (less(p, x, centred) @ p["W_enc"] + p["b_enc"]).topk(K, dim=-1)
    return torch.zeros(*x.shape[:-1], N).scatter_(-1, places, values.relu())


def jump(p, x, centred=False, threshold=None):
    z = less(p, x, centred) @ p["W_enc"] + p["b_enc"]
    return z.relu() * (z > (p["threshold"] if threshold is None else threshold))


def gated(p, x, centred=False):
    x = less(p, x, centred)
    on = (x @ p["W_enc"] + p["b_gate"] > 0).float()
    return on * (x @ (p["W_enc"] * p["r_mag"].exp()) + p["b_mag"]).relu()


def decoded(p, f):
    return f @ p["W_dec"] + p["b_dec"]


def rescaled_top_k(p, x, centred=False):
    values, places = ((x @ p["W_enc"] + p["b_enc"]) * p["W_dec"].norm(dim=-1)).topk(K, dim=-1)
    return torch.zeros(*x.shape[:-1], N).scatter_(-1, places, values.relu())


def unit_norms(p, x, centred=True):
    return standard(p, x, centred) * p["W_dec"].norm(dim=-1)


PLAIN = "W_enc b_enc W_dec b_dec"
LINEAR = "encoder.weight=W_enc encoder.bias=b_enc decoder.weight=W_dec"
FLAT = "W_enc=W_enc b_enc=b_enc W_dec=W_dec b_dec=b_dec"
LEFT = "left out"
OLD = {"metadata": LEFT, "hook_point": "blocks.0.hook_resid_pre", "lr": 1e-3, "finetuning_scaling_factor": False}
CASES = {  # how it is written, features, whether activations are centred
    "SAELens standard": (sae_lens(PLAIN, {"architecture": "standard"}), standard, False),
    "SAELens standard, centred": (
        sae_lens(PLAIN, {"architecture": "standard", "apply_b_dec_to_input": True}),
        standard,
        True,
    ),
    "SAELens top-k": (sae_lens(PLAIN, {"architecture": "topk", "k": K}), top_k, False),
    "SAELens top-k, rescaled": (
        sae_lens(PLAIN, {"architecture": "topk", "k": K, "rescale_acts_by_decoder_norm": True}),
        rescaled_top_k,
        False,
    ),
    "SAELens jump": (sae_lens(f"{PLAIN} threshold", {"architecture": "jumprelu"}), jump, False),
    "SAELens gated": (
        sae_lens("W_enc b_gate r_mag b_mag W_dec b_dec", {"architecture": "gated", "apply_b_dec_to_input": True}),
        gated,
        True,
    ),
    "SAELens 3": (
        sae_lens(PLAIN, OLD | {"apply_b_dec_to_input": LEFT, "normalize_activations": False}),
        standard,
        True,
    ),
    "SAELens 5, top-k": (
        sae_lens(PLAIN, OLD | {"activation_fn_str": "topk", "activation_fn_kwargs": {"k": K}}),
        top_k,
        False,
    ),
    "AutoEncoder": (dictionary_learning("AutoEncoder", f"{LINEAR} bias=b_dec"), unit_norms, True),
    "AutoEncoderNew": (dictionary_learning("AutoEncoderNew", f"{LINEAR} decoder.bias=b_dec"), standard, False),
    "AutoEncoderTopK": (
        dictionary_learning("AutoEncoderTopK", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K), threshold=torch.tensor(0.2)),
        top_k,
        True,
    ),
    "BatchTopKSAE": (
        dictionary_learning("BatchTopKSAE", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K), threshold=torch.tensor(0.2)),
        lambda p, x, centred: jump(p, x, centred, 0.2),
        True,
    ),
    "MatryoshkaBatchTopKSAE": (
        dictionary_learning(
            "MatryoshkaBatchTopKSAE",
            FLAT,
            k=torch.tensor(K),
            threshold=torch.tensor(-1.0),
            group_sizes=torch.tensor([N // 2, N // 2]),
        ),
        standard,
        True,
    ),
    "JumpReluAutoEncoder": (
        dictionary_learning("JumpReluAutoEncoder", f"{FLAT} threshold=threshold"),
        jump,
        False,
    ),
    "GatedAutoEncoder": (
        dictionary_learning(
            "GatedAutoEncoder",
            "encoder.weight=W_enc decoder.weight=W_dec decoder_bias=b_dec gate_bias=b_gate r_mag=r_mag mag_bias=b_mag",
        ),
        gated,
        True,
    ),
    "Gemma Scope": (gemma_scope, jump, False),
}
ROWS = (1, 3, 16, 256)


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """The module read from files, the parameters, and what the library computes of activations."""
    write, features, centred = CASES[request.param]
    p = parameters()
    write(tmp_path, p)
    reconstruct = {unit_norms: standard, rescaled_top_k: None}.get(features, features)

    def reconstruction(x):
        if reconstruct is None:
            return (rescaled_top_k(p, x) / p["W_dec"].norm(dim=-1)) @ p["W_dec"] + p["b_dec"]
        return decoded(p, reconstruct(p, x, centred))

    return load_sae(tmp_path), lambda x: features(p, x, centred), reconstruction


def activations(m, seed=1):
    return torch.randn(m, D, generator=torch.Generator().manual_seed(seed))


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=2e-5, equal_nan=True)


def test_features_and_reconstructions_are_those_of_the_library(case):
    autoencoder, features, reconstruction = case
    for m in (0, *ROWS):
        x = activations(m)
        before = x.clone()
        wanted = features(x)
        f = autoencoder.encode(x)
        assert f.shape == (m, N)
        assert_close(f, wanted)
        assert_close(autoencoder(x), reconstruction(x))
        assert_close(autoencoder.decode(f), reconstruction(x))
        assert torch.equal(x, before)
    assert 0.01 < float((wanted != 0).float().mean()) < 0.3  # the case is one of sparse features


def test_the_largest_features_are_those_of_all(case):
    autoencoder, features, _ = case
    for m in (0, *ROWS):
        x = activations(m)
        top = autoencoder.encode(x, k=4)
        assert top.indices.shape == top.values.shape == (m, 4)
        wanted = features(x)
        assert_close(top.values, wanted.topk(4, dim=-1).values)
        assert_close(wanted.gather(-1, top.indices), top.values)
        kept = torch.zeros(m, N).scatter_(-1, top.indices, top.values)
        assert_close(autoencoder.decode(top), autoencoder.decode(kept))


def test_any_shape_and_any_float(case):
    autoencoder, features, _ = case
    x = activations(6)
    assert_close(autoencoder.encode(x.view(2, 3, D)), features(x).view(2, 3, N))
    assert_close(autoencoder.encode(x[0]), features(x[0]))
    assert autoencoder(x.view(3, 2, D)).shape == (3, 2, D)
    assert autoencoder.encode(x.view(3, 2, D), k=2).values.shape == (3, 2, 2)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        assert_close(autoencoder.encode(x.to(dtype)), features(x.to(dtype).float()))
    assert_close(autoencoder.encode(x.t().contiguous().t()), features(x))


def test_rows_that_are_not_finite(case):
    """NaN stays NaN, in its row alone; infinity is on or off."""
    autoencoder, features, _ = case
    x = activations(16)
    x[3, 5], x[7, 2] = torch.nan, torch.inf
    f, wanted = autoencoder.encode(x), features(x)
    assert torch.equal(f[3].isnan(), wanted[3].isnan())
    assert torch.equal(f[7].isposinf(), wanted[7].isposinf())
    fine = torch.tensor([i for i in range(16) if i not in (3, 7)])
    assert_close(f[fine], wanted[fine])
    assert autoencoder(x)[3].isnan().all()
    assert_close(autoencoder(x)[fine], autoencoder(x[fine]))


def test_gradients_hooks_copies_and_new_weights(case, tmp_path):
    autoencoder, features, reconstruction = case
    x = activations(3)
    assert not any(one.requires_grad for one in autoencoder.parameters())
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    autoencoder(ours).square().sum().backward()
    reconstruction(theirs).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-3)
    for other in (copy.deepcopy(autoencoder), pickle.loads(pickle.dumps(autoencoder))):
        assert_close(other(x), reconstruction(x))
        with torch.no_grad():
            other.encoder.bias.sub_(100)
        assert not other.encode(x).any()
    assert_close(autoencoder(x), reconstruction(x))
    seen = []
    handle = autoencoder.encoder.register_forward_hook(lambda module, args, z: seen.append(z))
    f = autoencoder.encode(x)
    handle.remove()
    assert_close(f, features(x))
    assert (seen[0] < 0).any()  # pre-activations of features that are off are seen as they are
    assert_close(densify(copy.deepcopy(autoencoder))(x), reconstruction(x))


def test_ties_of_the_largest(tmp_path):
    """Equal features: any of them may be taken, and the values are the same."""
    p = parameters()
    p["W_enc"][:, 1::2] = p["W_enc"][:, ::2]
    p["b_enc"][1::2] = p["b_enc"][::2]
    CASES["SAELens top-k"][0](tmp_path, p)
    autoencoder, x = load_sae(tmp_path), activations(16)
    top, wanted = autoencoder.encode(x, k=K), top_k(p, x)
    assert_close(top.values, wanted.topk(K).values)
    z = (x @ p["W_enc"] + p["b_enc"]).relu()
    assert_close(z.gather(-1, top.indices), top.values)
    assert all(len(set(row.tolist())) == K for row in top.indices)
    assert_close(autoencoder(x), decoded(p, torch.zeros(16, N).scatter_(-1, top.indices, top.values)))


@pytest.mark.parametrize("skip", ["", "skip_"])
@pytest.mark.parametrize("kind", ["", "jumprelu_"])
def test_transcoders(tmp_path, kind, skip):
    p = parameters(OUT)
    names = PLAIN + " threshold" * bool(kind) + " W_skip" * bool(skip)
    sae_lens(names, {"architecture": f"{kind}{skip}transcoder", "d_out": OUT})(tmp_path, p)
    x = activations(5)
    f = (jump if kind else standard)(p, x)
    wanted = decoded(p, f) + (x @ p["W_skip"].t() if skip else 0)
    assert_close(load_sae(tmp_path)(x), wanted)


def test_half_precision_is_widened(tmp_path):
    p = {name: one.bfloat16() for name, one in parameters().items()}
    sae_lens(PLAIN, {"architecture": "standard", "dtype": "bfloat16"})(tmp_path, p)
    x = activations(5)
    assert_close(load_sae(tmp_path).encode(x), standard({name: one.float() for name, one in p.items()}, x))


def test_a_sample_changes_what_is_read_and_nothing_else(tmp_path):
    p = parameters()
    CASES["SAELens standard, centred"][0](tmp_path, p)
    x = activations(300) + 5 * activations(1, seed=2)
    autoencoder = load_sae(tmp_path, sample=x[:200].view(2, 100, D))
    assert_close(autoencoder.encode(x), standard(p, x, True))


def test_autoencoders_that_compute_densely(tmp_path):
    """In training, in another dtype, with features that are mostly on."""
    p = parameters()
    CASES["Gemma Scope"][0](tmp_path, p)
    x = activations(5)
    autoencoder = load_sae(tmp_path)
    assert_close(autoencoder.train()(x), decoded(p, jump(p, x)))
    wide = {name: one.double() for name, one in p.items()}
    assert_close(autoencoder.eval().double()(x), decoded(wide, jump(wide, x.double())))
    autoencoder.float().activation.threshold.fill_(0.5)
    assert_close(autoencoder.encode(x), jump(p, x, threshold=0.5))
    with torch.no_grad():
        autoencoder.encoder.bias.add_(5)
    assert_close(autoencoder.encode(x), jump(p | {"b_enc": p["b_enc"] + 5}, x, threshold=0.5))


# ---- what is refused ----


def rejects(folder, match, kind=ModelFileError):
    with pytest.raises(kind, match=match):
        load_sae(folder)


def test_missing_and_damaged_files(tmp_path):
    rejects(tmp_path / "nowhere", "must be a folder with cfg.json and sae_weights.safetensors", FileNotFoundError)
    for name, (write, _, _) in CASES.items():
        folder = tmp_path / name
        folder.mkdir()
        write(folder, parameters())
        for path in folder.iterdir():
            whole = path.read_bytes()
            for part in (b"", whole[: len(whole) // 2], whole[:-1], b"\x80\x02}q\x00." + whole[:100]):
                path.write_bytes(part)
                rejects(folder, f"{path.name} must be whole")
            path.unlink()
            rejects(folder, "download all files", FileNotFoundError)
            path.write_bytes(whole)


@pytest.mark.parametrize("name", CASES)
def test_tensors_that_disagree_with_the_configuration(tmp_path, name):
    write, p = CASES[name][0], parameters()
    for wrong in (
        {"W_enc": p["W_enc"][:, :-1]},
        {"W_dec": p["W_dec"][:-1]},
        {"b_dec": p["b_dec"][:-1]},
        {"W_dec": p["W_dec"].double()},
        {"b_dec": p["b_dec"] * torch.nan},
    ):
        write(tmp_path, p | wrong)
        rejects(tmp_path, f"(W_dec|{next(iter(wrong))}) is")


@pytest.mark.parametrize(
    ("cfg", "names", "match"),
    [
        ({"architecture": "temporal"}, PLAIN, "architecture in .* must be one of"),
        ({"architecture": LEFT}, PLAIN, "architecture in .* must be one of"),
        ({"architecture": "standard", "normalize_activations": "layer_norm"}, PLAIN, 'has "layer_norm": fold'),
        ({"architecture": "standard", "d_sae": N + 1}, PLAIN, "W_dec is"),
        ({"architecture": "standard", "d_in": "24"}, PLAIN, "d_in in .* must be an integer"),
        ({"architecture": "standard", "new_way": True}, PLAIN, "has new_way too"),
        ({"architecture": "standard"}, f"{PLAIN} threshold", "threshold is"),
        ({"architecture": "jumprelu"}, PLAIN, "threshold is missing"),
        ({"architecture": "gated"}, PLAIN, "b_enc is"),
        ({"architecture": "topk"}, PLAIN, "k in .* must be an integer; got None"),
        ({"architecture": "topk", "k": N + 1}, PLAIN, "k in .* must lie between 1 and"),
        ({"architecture": "transcoder", "d_out": D, "apply_b_dec_to_input": True}, PLAIN, "apply_b_dec_to_input false"),
        (
            {"architecture": "standard", "apply_b_dec_to_input": "false"},
            PLAIN,
            "must be one of False, True",
        ),
        (
            OLD | {"activation_fn_str": "topk", "activation_fn_kwargs": [K]},
            PLAIN,
            "k in .* must be an integer; got None",
        ),
        (OLD | {"activation_fn_str": "tanh-relu"}, PLAIN, "must be one of relu, topk"),
        (OLD | {"finetuning_scaling_factor": True}, PLAIN, "finetuning_scaling_factor must be false"),
    ],
)
def test_configurations_that_are_refused(tmp_path, cfg, names, match):
    sae_lens(names, cfg)(tmp_path, parameters())
    rejects(tmp_path, match, (ValueError, TypeError))


def test_dictionaries_that_are_refused(tmp_path):
    dictionary_learning("IdentityDict", LINEAR)(tmp_path, parameters())
    rejects(tmp_path, "dict_class in .* must be one of", ValueError)
    dictionary_learning("BatchTopKSAE", f"{LINEAR} b_dec=b_dec")(tmp_path, parameters())
    rejects(tmp_path, "threshold is missing")
    dictionary_learning("AutoEncoderTopK", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K))(tmp_path, parameters())
    config = json.loads((tmp_path / "config.json").read_text())
    config["trainer"]["k"] = K + 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    rejects(tmp_path, "k must be one number")
    (tmp_path / "config.json").write_text("[1]")
    rejects(tmp_path, "config.json must be whole")


@pytest.mark.parametrize(
    "held",
    [
        [1.0],
        {"k": "9"},
        {"encoder.weight": torch.zeros(2, 3, 4)},
        {1: torch.zeros(2)},
        {"bias": torch.zeros(D).to_sparse()},
        {"bias": torch.zeros(D, device="meta")},
        {"bias": torch.zeros(D), "b_dec": torch.ones(D)},
    ],
)
def test_files_that_hold_something_else(tmp_path, held):
    CASES["AutoEncoder"][0](tmp_path, parameters())
    torch.save(held, tmp_path / "ae.pt")
    rejects(tmp_path, "ae.pt must be whole")


def test_damaged_arrays_that_are_compressed(tmp_path):
    np.savez_compressed(tmp_path / "params.npz", W_enc=np.random.default_rng(0).normal(size=(D, N)).astype(np.float32))
    whole = (tmp_path / "params.npz").read_bytes()
    for at in range(60, 160):
        (tmp_path / "params.npz").write_bytes(whole[:at] + b"\xff\xff" + whole[at + 2 :])
        rejects(tmp_path, "params.npz must be whole")


@pytest.mark.parametrize("names", ["b_enc", "W_enc b_enc", "W_dec threshold"])
def test_arrays_that_are_missing(tmp_path, names):
    p = parameters()
    np.savez(tmp_path / "params.npz", **{name: p[name].numpy() for name in names.split()})
    rejects(tmp_path, "is missing|is torch.float32")


def test_inputs_that_are_refused(tmp_path):
    CASES["SAELens top-k"][0](tmp_path, parameters())
    autoencoder = load_sae(tmp_path)
    for call in (autoencoder, autoencoder.encode):
        for x in (torch.zeros(3, D + 1), torch.zeros(3, D, dtype=torch.long), torch.tensor(0.0)):
            with pytest.raises(ValueError, match="activations must have shape"):
                call(x)
    with pytest.raises(ValueError, match="must lie between 1 and 9"):
        autoencoder.encode(torch.zeros(3, D), k=K + 1)
    for features in (
        (torch.tensor([[N]]), torch.ones(1, 1)),
        (torch.tensor([[-1]]), torch.ones(1, 1)),
        (torch.tensor([[0.0]]), torch.ones(1, 1)),
        (torch.tensor([[0]]), torch.ones(1, 2)),
        (torch.tensor(0), torch.tensor(1.0)),
        (torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, 0)),
    ):
        with pytest.raises(ValueError, match="features must be places"):
            autoencoder.decode(features)


def test_activations_without_thresholds_are_refused():
    with pytest.raises(TypeError, match=r"must be nn\.ReLU, Jump or Gate"):
        Autoencoder(nn.Linear(2, 3), nn.Linear(3, 2), nn.GELU())


def test_code_in_a_file_is_not_run(tmp_path):
    dictionary_learning("AutoEncoder", f"{LINEAR} bias=b_dec")(tmp_path, parameters())
    torch.save(nn.Linear(2, 3), tmp_path / "ae.pt")
    rejects(tmp_path, "ae.pt must be whole")


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_a_gated_autoencoder_of_linear_layers_takes_integers(weights):
    """``sparsify`` on a module as dictionary_learning writes it, whose parameters want gradients."""
    p = parameters()

    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(D, N, bias=False), nn.Linear(N, D, bias=False)
            self.encoder.weight.data, self.decoder.weight.data = p["W_enc"].t(), p["W_dec"].t()
            for name in ("b_gate", "r_mag", "b_mag", "b_dec"):
                setattr(self, name, nn.Parameter(p[name].clone()))

        def forward(self, x):
            z = self.encoder(x - self.b_dec)
            on = (z + self.b_gate > 0).to(z.dtype)
            return self.decoder(on * (self.r_mag.exp() * z + self.b_mag).relu()) + self.b_dec

    model, x = Gated().eval(), activations(64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # large errors of integers are said
        sparsify(model, "exact", x, weights=weights)
    assert plan_of(model).choices[0].method == "exact"
    wanted = decoded(p, gated(p, x, True))
    assert float((model(x).detach() - wanted).norm() / wanted.norm()) < {"int8": 0.2, "int4": 0.8}[weights]


def test_most_features_are_never_computed(tmp_path):
    """The sparse path is taken, also of what was loaded in inference mode: the layers count their calls."""
    CASES["Gemma Scope"][0](tmp_path, parameters())
    with torch.inference_mode():
        autoencoder: Autoencoder = load_sae(tmp_path)
        autoencoder(activations(3))
    assert autoencoder.encoder._sparse.sparse_calls == autoencoder.decoder._sparse.sparse_calls == 1


def of_layers(bias=True, **options):
    torch.manual_seed(5)
    encoder, decoder = nn.Linear(12, 90), nn.Linear(90, 12, bias=bias)
    return encoder, decoder, Autoencoder(copy.deepcopy(encoder), copy.deepcopy(decoder), nn.ReLU(), **options)


@pytest.mark.parametrize("options", [{}, {"centred": True}, {"n_active": 4}])
def test_a_decoder_without_a_bias(options):
    encoder, decoder, made = of_layers(bias=False, **options)
    x = torch.randn(5, 12)
    with torch.no_grad():
        features = encoder(x).relu()
        values, indices = features.topk(4)
        largest = torch.zeros_like(features).scatter_(1, indices, values)
        assert torch.allclose(made.decode(made.encode(x, 4)), decoder(largest), atol=1e-5)
        assert torch.allclose(made(x), decoder(largest if made.n_active else features), atol=1e-5)


@pytest.mark.parametrize("n_active", [0, -1, 91])
def test_numbers_of_features_that_are_refused(n_active):
    with pytest.raises(ValueError, match=f"`n_active` must lie between 1 and 90; got {n_active}"):
        of_layers(n_active=n_active)
    with pytest.raises(ValueError, match="must read the 90 features of `encoder`; it reads 91"):
        Autoencoder(nn.Linear(12, 90), nn.Linear(91, 12), nn.ReLU())


def test_a_sample_of_one_row_and_a_hook_on_the_activation():
    encoder, _, made = of_layers(sample=torch.randn(12))
    x = torch.randn(5, 12)
    with torch.no_grad():
        wanted = encoder(x).relu().topk(3).values
        assert torch.allclose(made.encode(x, 3).values, wanted, atol=1e-5)
        made.activation.register_forward_hook(lambda module, given, out: 2 * out)
        assert torch.allclose(made.encode(x, 3).values, 2 * wanted, atol=1e-5)
