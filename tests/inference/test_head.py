"""Heads that compute their k largest outputs: models of transformers give the same tokens, and all logits elsewhere."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from torch import nn  # noqa: E402

from sparsact.inference import densify, load_plan, plan_of, save_plan, sparsify  # noqa: E402

WORDS = 700
COMMON = {"vocab_size": WORDS, "eos_token_id": None, "bos_token_id": None, "pad_token_id": 1}


def opt():
    config = transformers.OPTConfig(
        hidden_size=32, word_embed_proj_dim=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=2, **COMMON
    )
    return transformers.OPTForCausalLM(config)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, **COMMON))


def llama():
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, **COMMON
    )
    return transformers.LlamaForCausalLM(config)


def made(make, k=20, method="auto"):
    """A dense model, its sparse copy, and tokens; a tenth of the words tie with others."""
    torch.manual_seed(7)
    dense = make().eval()
    with torch.no_grad():
        words = dense.get_output_embeddings().weight
        words.mul_(5)
        words[600:670] = words[500:570]
    tokens = torch.randint(2, WORDS, (2, 5))
    sparse = sparsify(dense, method, tokens, head="top_k", k=k, time_limit=0.2, copy=True)
    return dense, sparse, tokens


def head_calls(model):
    return model.get_output_embeddings()._sparse.sparse_calls


@pytest.mark.parametrize("make", [opt, gpt2, llama])
def test_logits_are_exact_or_out_of_the_largest(make):
    dense, sparse, tokens = made(make)
    assert sorted(sparse.state_dict()) == sorted(dense.state_dict())
    with torch.no_grad():
        logits, wanted = sparse(tokens[:1]).logits, dense(tokens[:1]).logits
    kept = logits > -torch.inf
    assert torch.allclose(logits[kept], wanted[kept], atol=1e-5)
    floor = wanted.topk(20).values[..., -1:]
    assert kept[wanted >= floor - 1e-6].all()
    assert kept.float().mean() < 0.2
    head = plan_of(sparse).head
    assert (head.layer, head.k, head.outputs) == ("lm_head", 20, WORDS)
    assert f"head lm_head: the 20 largest of {WORDS}" in str(plan_of(sparse))
    assert plan_of(sparse).to_dict()["head"]["k"] == 20


def assert_same_tokens(dense, sparse, tokens, calls, **options):
    """The same tokens by as many calls of the sparse head; None: by some."""
    before = head_calls(sparse)
    found = []
    for model in (sparse, dense):
        torch.manual_seed(11)
        out = model.generate(tokens, **options)
        found.append(getattr(out, "sequences", out))
    assert torch.equal(*found)
    assert head_calls(sparse) - before == calls


@pytest.mark.parametrize("make", [opt, gpt2, llama])
def test_generate_gives_the_same_tokens(make):
    dense, sparse, tokens = made(make)
    for options in (
        {"do_sample": False},
        {"do_sample": True, "top_k": 20},
        {"do_sample": True, "top_k": 5, "top_p": 0.8, "temperature": 0.7},
    ):
        assert_same_tokens(dense, sparse, tokens, 100, max_new_tokens=100, **options)


@pytest.mark.slow
@pytest.mark.parametrize("make", [opt, llama])
def test_ten_thousand_steps_give_the_same_tokens(make):
    dense, sparse, tokens = made(make)
    for seed in range(50):
        torch.manual_seed(seed)
        tokens = torch.randint(2, WORDS, (1, 5))
        assert_same_tokens(dense, sparse, tokens, 200, max_new_tokens=200, do_sample=seed % 2 == 1, top_k=20)


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": True, "top_k": 0, "top_p": 0.9},
        {"do_sample": True, "top_k": 21},
        {"do_sample": True, "top_k": 0, "temperature": 2.0},
        {"do_sample": True, "top_k": 0, "min_p": 0.01},
        {"do_sample": True, "top_k": 0, "typical_p": 0.5},
        {"do_sample": False, "num_beams": 3},
        {"do_sample": False, "repetition_penalty": 1.5},
        {"do_sample": False, "no_repeat_ngram_size": 2},
        {"do_sample": False, "output_scores": True, "return_dict_in_generate": True},
        {"do_sample": False, "output_logits": True, "return_dict_in_generate": True},
        {"do_sample": False, "suppress_tokens": [5, 6, 7]},
    ],
)
def test_generate_uses_all_logits_where_it_needs_them(options):
    dense, sparse, tokens = made(llama)
    with pytest.warns(UserWarning, match="the head computes all logits, not the 20 largest"):
        assert_same_tokens(dense, sparse, tokens, 0, max_new_tokens=8, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert_same_tokens(dense, sparse, tokens, 0, max_new_tokens=8, **options)
    assert_same_tokens(dense, sparse, tokens, 8, max_new_tokens=8, do_sample=False)


def test_a_processor_of_the_caller_sees_all_logits():
    dense, sparse, tokens = made(llama)
    seen = []

    def processor(ids, scores):
        seen.append(scores.isfinite().all())
        return -scores

    with pytest.warns(UserWarning, match="function reads them"):
        assert_same_tokens(dense, sparse, tokens, 0, max_new_tokens=4, do_sample=False, logits_processor=[processor])
    assert len(seen) == 8
    assert all(seen)


def test_a_loss_training_gradients_and_many_rows_use_all_logits():
    dense, sparse, tokens = made(opt)
    with torch.no_grad():
        assert torch.equal(sparse(tokens[:1], labels=tokens[:1]).loss, dense(tokens[:1], labels=tokens[:1]).loss)
        assert not sparse(tokens[:1]).logits.isfinite().all()
        with pytest.raises(IndexError):  # the next call is none with labels
            sparse(tokens[:1] + WORDS, labels=tokens[:1])
        assert not sparse(tokens[:1]).logits.isfinite().all()
        assert torch.equal(sparse(tokens.repeat(1, 2)).logits, dense(tokens.repeat(1, 2)).logits)
        sparse.lm_head.register_forward_hook(lambda *given: None)
        assert torch.equal(sparse(tokens[:1]).logits, dense(tokens[:1]).logits)
    sparse.lm_head._forward_hooks.clear()
    sparse(tokens[:1]).logits.sum().backward()
    assert sparse.lm_head.weight.grad.abs().sum() > 0
    with torch.no_grad():
        sparse.lm_head.weight.neg_()
        dense.lm_head.weight.neg_()
        logits, wanted = sparse(tokens[:1]).logits, dense(tokens[:1]).logits
    kept = logits > -torch.inf
    assert torch.allclose(logits[kept], wanted[kept], atol=1e-5)
    assert kept[wanted >= wanted.topk(20).values[..., -1:]].all()


def test_copies_files_and_densify(tmp_path):
    dense, sparse, tokens = made(gpt2)
    save_plan(sparse, tmp_path / "plan.safetensors")
    loaded = load_plan(copy.deepcopy(dense), tmp_path / "plan.safetensors", tokens)
    assert plan_of(loaded).head == plan_of(sparse).head
    for other in (loaded, copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        assert vars(other)["generate"].model is other
        assert_same_tokens(dense, other, tokens, 6, max_new_tokens=6, do_sample=False)
        with torch.no_grad():
            assert torch.equal(other(tokens[:1]).logits, sparse(tokens[:1]).logits)
    densify(sparse)
    assert not {"generate", "_get_logits_processor"} & set(vars(sparse))
    assert not sparse._forward_hooks
    assert not sparse._forward_pre_hooks
    assert type(sparse.lm_head) is nn.Linear
    assert torch.equal(sparse(tokens).logits, dense(tokens).logits)


def test_a_plan_is_refused_where_outputs_of_the_head_change(tmp_path):
    torch.manual_seed(3)
    x = torch.randn(4, 8)
    dense = Net(nn.Identity()).eval()
    save_plan(sparsify(copy.deepcopy(dense), "exact", x, head="top_k", k=5), tmp_path / "plan.safetensors")
    assert plan_of(load_plan(copy.deepcopy(dense), tmp_path / "plan.safetensors", x)).head.layer == "words"
    dense.last = nn.Tanh()
    with pytest.raises(ValueError, match="whose outputs the model returns as they are"):
        load_plan(dense, tmp_path / "plan.safetensors", x)
    assert type(dense.words) is nn.Linear


class Net(nn.Module):
    """A block and a head, of a class that nobody knows."""

    def __init__(self, last=None):
        super().__init__()
        self.up, self.down, self.words = nn.Linear(8, 64), nn.Linear(64, 8), nn.Linear(8, 300)
        self.last = last

    def forward(self, x):
        out = self.words(x + self.down(torch.relu(self.up(x) - 1)))
        return out if self.last is None else self.last(out)


class Loss(nn.Module):
    """A loss that a model of transformers does not compute itself."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, **batch):
        logits = self.model(tokens).logits
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


@pytest.mark.parametrize("method", ["exact", "certified"])
def test_a_model_of_another_kind(method):
    torch.manual_seed(3)
    model, x = Net().eval(), torch.randn(4, 8)
    with torch.no_grad():
        wanted = model(x)
        sparsify(model, method, x, head="top_k", k=5)
        assert torch.equal(model(x).topk(5).indices, wanted.topk(5).indices)
        assert model(x).isfinite().float().mean() < 0.3
    assert plan_of(model).head.layer == "words"


def test_errors_say_what_is_wrong():
    x = torch.randn(4, 8)
    with pytest.raises(ValueError, match='pass head="top_k" too'):
        sparsify(Net(), "exact", x, k=5)
    with pytest.raises(ValueError, match="`head` must be"):
        sparsify(Net(), "exact", x, head="best")
    with pytest.raises(ValueError, match="`k` must lie between 1 and 300, the outputs of words; got 301"):
        sparsify(Net(), "exact", x, head="top_k", k=301)
    with pytest.raises(ValueError, match='no fewer bytes than weights="int8"'):
        sparsify(Net(), "exact", x, weights="int8", head="top_k")
    with pytest.raises(ValueError, match="whose outputs the model returns as they are"):
        sparsify(Net(torch.tanh), "exact", x, head="top_k", k=5)
    for last in (lambda out: (out, out.logsumexp(-1)), lambda out: (torch.tanh(out[:, :5]), out)):
        with pytest.raises(ValueError, match="returns the outputs of words and computes nothing from them"):
            sparsify(net := Net(last), "exact", x, head="top_k", k=5)
        assert type(net.words) is nn.Linear
    loss = Loss(llama()).eval()
    tokens = torch.randint(2, WORDS, (2, 5))
    with pytest.raises(ValueError, match=r"returns the outputs of model\.lm_head and computes nothing from them"):
        sparsify(loss, "auto", {"tokens": tokens, "labels": tokens}, head="top_k", k=5, time_limit=0.2)
    assert not {"generate", "_get_logits_processor"} & set(vars(loss.model))
    with pytest.raises(ValueError, match="float64 on cpu"):
        sparsify(Net().double(), "exact", x.double(), head="top_k", k=5)
    block = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 300))
    with pytest.raises(ValueError, match="2 is a layer of a block"):
        sparsify(block, "exact", x, head="top_k", k=5)
    assert type(block[2]) is nn.Linear


class Retries(transformers.LlamaForCausalLM):
    """Generates twice within one call, as Whisper does at higher temperatures."""

    def generate(self, tokens, **options):
        greedy = super().generate(tokens, max_new_tokens=3, do_sample=False)
        return super().generate(greedy, max_new_tokens=20, **options)


@pytest.mark.parametrize(
    ("options", "calls"), [({"do_sample": True, "top_k": 0}, 3), ({"do_sample": True, "top_k": 5}, 23)]
)
def test_each_part_of_a_call_says_which_logits_it_needs(options, calls):
    dense, sparse, tokens = made(lambda: Retries(llama().config))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_tokens(dense, sparse, tokens, calls, **options)


def test_batches_in_threads_are_refused():
    _, sparse, tokens = made(llama)
    config = transformers.GenerationConfig(do_sample=True, top_k=0, max_new_tokens=3, eos_token_id=-1)
    with pytest.raises(ValueError, match="generate_batch reads them in another thread: call generate"):
        sparse.generate_batch([tokens[0].tolist()], generation_config=config)


def test_a_head_in_float64_is_dense():
    dense, sparse, tokens = made(llama)
    with torch.no_grad():
        assert torch.equal(sparse.double()(tokens[:1]).logits, dense.double()(tokens[:1]).logits)
        assert not sparse.float()(tokens[:1]).logits.isfinite().all()
