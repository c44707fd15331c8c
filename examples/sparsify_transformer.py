"""A transformer of Hugging Face that computes only the units that are on: measured, made sparse, and the same tokens.

Run it as ``python examples/sparsify_transformer.py [FOLDER]``, FOLDER as ``save_pretrained`` writes one of a model with
ReLU, such as an OPT. Without it an OPT is made from its configuration, with random weights and biases that keep most
units off, as training does; nothing is downloaded. Needs ``pip install "sparsact[hf]"``.
"""

from __future__ import annotations

import sys
from time import perf_counter

import torch
from transformers import AutoModelForCausalLM, OPTConfig, OPTForCausalLM, PreTrainedModel

import sparsact as sa

LENGTH = 40  # tokens to generate


def opt(n_layers: int = 4) -> OPTForCausalLM:
    """An OPT with the widths of OPT-125M, of whose units some 4 % are on."""
    config = OPTConfig(num_hidden_layers=n_layers, vocab_size=2048, init_std=0.04)
    torch.manual_seed(0)
    model = OPTForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.decoder.layers:
            layer.fc1.bias.fill_(-1.75 * config.init_std * config.hidden_size**0.5)
    return model.eval()


def generated(model: PreTrainedModel, prompt: torch.Tensor) -> tuple[list[int], float]:
    """The tokens after the prompt, the likeliest each, and how many a second."""
    start = perf_counter()
    tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=LENGTH, do_sample=False)
    new = tokens[0, prompt.shape[1] :].tolist()
    return new, len(new) / (perf_counter() - start)


def main() -> None:
    """Measure, sparsify, generate with both, and go back."""
    torch.set_num_threads(1)  # one token at a time waits for memory: more threads help little
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval() if len(sys.argv) > 1 else opt()
    shown = torch.randint(3, model.config.vocab_size, (4, 64), generator=torch.Generator().manual_seed(1))
    print(sa.measure(model, shown))
    prompt = shown[:1, :8]
    generated(model, prompt)  # the first call warms up
    wanted, dense = generated(model, prompt)
    sa.sparsify(model, "auto", shown)
    print(f"\n{sa.plan_of(model)}\n")
    found, sparse = generated(model, prompt)
    print(f"dense {dense:.1f} tokens/s, sparse {sparse:.1f} tokens/s; the same tokens: {found == wanted}")
    sa.densify(model)


if __name__ == "__main__":
    main()
