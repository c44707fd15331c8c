"""A sparse model beside a dense one, by hand and against brute force."""

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from sparsact.inference.comparison import compare, main_output


class Bigram(nn.Module):
    """Logits (texts, tokens, words) of the next word."""

    def __init__(self, seed):
        super().__init__()
        table = torch.randn(11, 11, generator=torch.Generator().manual_seed(seed))
        self.table = nn.Parameter(table, requires_grad=False)

    def forward(self, words):
        assert not self.training
        return self.table[words]


def next_word(logits, words):
    return cross_entropy(logits[:, :-1].transpose(1, 2), words[:, 1:], reduction="none")


def texts(sizes, seed=3):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 11, size, generator=draw) for size in sizes]


def test_brute_force():
    dense, sparse = Bigram(1), Bigram(1)
    sparse.table.data[3:5] += 0.5 * torch.randn(2, 11, generator=torch.Generator().manual_seed(2))
    batches = texts([(4, 9), (3, 17), (5, 6)])
    got = compare(dense, sparse, batches, next_word)
    assert dense.training
    losses, same, largest, differences = ([], []), [], 0.0, []
    for words in batches:
        for text in words:
            difference = 0.0
            for now, then in pairwise(text):
                pair = [float(-torch.log_softmax(model.table[now], 0)[then]) for model in (dense, sparse)]
                losses[0].append(pair[0])
                losses[1].append(pair[1])
                difference += pair[1] - pair[0]
            differences.append((difference, len(text) - 1))
            for now in text:
                same.append(bool(dense.table[now].argmax() == sparse.table[now].argmax()))
                largest = max(largest, float((dense.table[now] - sparse.table[now]).abs().max()))
    n = len(losses[0])
    means = [sum(each) / n for each in losses]
    assert (got.cases, got.losses) == (12, n)
    assert got.dense_loss == pytest.approx(means[0], rel=1e-5)
    assert got.sparse_loss == pytest.approx(means[1], rel=1e-5)
    assert got.dense_perplexity == pytest.approx(exp(means[0]), rel=1e-5)
    assert got.perplexity_ratio.value == pytest.approx(exp(means[1] - means[0]), rel=1e-5)
    assert got.largest_difference == pytest.approx(largest)
    assert got.agreement.value == pytest.approx(sum(same) / len(same))
    change = means[1] - means[0]
    residuals = sum((difference - change * size) ** 2 for difference, size in differences)
    assert got.loss_change.standard_error == pytest.approx((residuals * 12 / 11) ** 0.5 / n, rel=1e-4)


def test_a_model_beside_itself():
    model = Bigram(1)
    got = compare(model, deepcopy(model), texts([(4, 9)])[0], next_word)
    assert got.loss_change.value == got.loss_change.standard_error == got.largest_difference == 0
    assert got.agreement.value == got.perplexity_ratio.value == 1


def test_the_same_change_of_each_token_is_certain():
    """Paired: losses differ from token to token, their change does not."""
    model = Bigram(1)

    def loss(logits, words):
        return next_word(logits, words) + (0.25 if logits.mean() > 50 else 0.0)

    shifted = deepcopy(model)
    shifted.table.data += 100.0  # the softmax does not see it
    got = compare(model, shifted, texts([(6, 9)])[0], loss)
    assert got.loss_change.value == pytest.approx(0.25, abs=1e-4)
    assert got.loss_change.standard_error < 1e-4


def test_a_mean_a_batch_is_one_case():
    got = compare(Bigram(1), Bigram(2), texts([(4, 9), (3, 5)]), lambda logits, words: next_word(logits, words).mean())
    assert (got.cases, got.losses) == (2, 2)


def test_a_loss_beyond_exp_is_infinite_perplexity():
    got = compare(Bigram(1), Bigram(1), texts([(4, 9)])[0], lambda logits, words: logits[:, 0, 0] * 0 + 1e4)
    assert got.dense_perplexity == inf
    assert got.perplexity_ratio.value == 1


@dataclass
class Output:
    logits: torch.Tensor


def test_outputs_in_records_and_tuples():
    logits = torch.zeros(2, 3)
    for output in (logits, Output(logits), (logits, None), [Output(logits)]):
        assert torch.equal(main_output(output), logits)
    with pytest.raises(TypeError, match="returns dict, which holds no tensor"):
        main_output({"scores": logits})


def test_errors():
    words = texts([(4, 9)])[0]
    with pytest.raises(ValueError, match="loss must be finite"):
        compare(Bigram(1), Bigram(1), words, lambda logits, words: logits[:, 0, 0] * float("nan"))
    with pytest.raises(ValueError, match=r"return shapes \(2, 3\) and \(2, 4\)"):
        compare(nn.Linear(5, 3), nn.Linear(5, 4), torch.zeros(2, 5), lambda out, x: out.sum(1))
