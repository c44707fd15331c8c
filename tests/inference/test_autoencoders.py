"""Autoencoders read from the files of other libraries, beside what these compute, in plain torch."""

import copy
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
from inference.saved_autoencoders import (  # noqa: E402
    CASES,
    OUT,
    PLAIN,
    D,
    K,
    N,
    decoded,
    gated,
    jump,
    parameters,
    rescaled_top_k,
    sae_lens,
    standard,
    top_k,
    unit_norms,
)
from torch import nn  # noqa: E402

from sparsact.inference import Autoencoder, densify, load_sae, plan_of, sparsify  # noqa: E402

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


def test_features_and_reconstructions_match_the_library(case):
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


def test_the_largest_features_are_the_largest_of_all(case):
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
