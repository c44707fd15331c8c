"""Several processes compute what one does: experts spread over them, data parallel, fully sharded, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import data_parallel
import pytest
import torch
from data_parallel import KINDS
from expert_layers import NAMES
from memory_layers import BOTH
from parallel_layers import (
    CASES,
    FSDP,
    POOLED,
    batch,
    gradients,
    loss_of,
    model,
    pooled,
    pooled_batch,
    pooled_layer,
    restore,
)
from torch import nn

from sparsact.layers import clip_gradients, shard_experts, update_biases

gloo = torch.distributed.is_available() and torch.distributed.is_gloo_available()
pytestmark = [
    pytest.mark.skipif(not gloo, reason="this build of torch has no gloo"),
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),  # of a checkpoint that one process reads
]
TESTS = Path(__file__).parents[1]
TOLERANCE = 1e-10


def run(processes, folder, what):
    """What each process found."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    script = str(TESTS / "parallel_layers.py")
    words = [sys.executable, script, str(processes), str(folder), what]
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            error = running.communicate(timeout=240)[1]
        finally:
            with suppress(ProcessLookupError):  # all of them, where one waits for another that failed
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, error
    return [torch.load(folder / f"{what}-{rank}.pt", weights_only=True) for rank in range(processes)]


def in_parts(case, parts):
    """Outputs and gradients of one process that sees the parts one after the other: a mean of their losses."""
    whole, outputs = model(case), []
    for x, y in zip(*(rows.chunk(parts) for rows in batch(0)), strict=True):
        loss, out = loss_of(whole, x, y)
        (loss / parts).backward()
        outputs.append(out.detach())
    return outputs, gradients(whole)


def at_once(case):
    """The same for the whole batch in one call."""
    whole = model(case)
    loss, out = loss_of(whole, *batch(0))
    loss.backward()
    return out.detach(), gradients(whole)


def compare(found, parts):
    """What processes found against one process."""
    for case in CASES:
        outputs, wanted = in_parts(case, parts)
        for kind in ("experts", "data", "fsdp", "recomputed", "accelerate"):
            for rank, output in enumerate(outputs):
                if found[rank].get((case, kind)) is None:  # tried on one case, or not to be had here
                    continue
                y, grads = found[rank][case, kind]
                torch.testing.assert_close(y, output, rtol=0, atol=TOLERANCE)
                assert set(grads) == set(wanted)
                for name, value in wanted.items():
                    torch.testing.assert_close(grads[name], value, rtol=0, atol=TOLERANCE, msg=f"{case} {kind} {name}")
                    assert value.any(), name
    narrow = torch.cat([each["narrow"] for each in found])
    assert narrow.dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(narrow, model("plain").float()(batch(0)[0].float()), rtol=0, atol=0.02)
    # Without capacities and balancing losses parts do not matter, except to a hash: fewer rows round to other bits.
    y, wanted = at_once("plain")
    torch.testing.assert_close(torch.cat([each["plain", "experts"][0] for each in found]), y, rtol=0, atol=TOLERANCE)
    for name, value in wanted.items():
        torch.testing.assert_close(found[0]["plain", "experts"][1][name], value, rtol=0, atol=TOLERANCE)


def compare_clipped(found, parts):
    """Gradients cut to a common norm, against torch's function in one process."""
    for case in ("plain", "losses"):
        whole = model(case)
        for x, y in zip(*(rows.chunk(parts) for rows in batch(0)), strict=True):
            (loss_of(whole, x, y)[0] / parts).backward()
        norm = nn.utils.clip_grad_norm_(whole.parameters(), 0.01)
        assert norm > 0.02
        for kind in ("experts", "data", "fsdp"):
            for each in found:
                if kind == "fsdp" and not FSDP:
                    continue
                found_norm, grads = each[case, kind, "clipped"]
                torch.testing.assert_close(found_norm, norm)
                for name, value in gradients(whole).items():
                    torch.testing.assert_close(grads[name], value, rtol=0, atol=TOLERANCE)


def compare_pooled(found):
    """Losses, gradients and biases where all tokens are balanced together, against one process that sees them all."""
    for router in POOLED:
        whole = pooled_layer(router)
        loss, wanted = pooled(whole, *pooled_batch())
        if router == "sigmoid":
            update_biases(whole)
        for each in found:
            for kind in ("data", "experts", "recomputed", *(["fsdp"] if FSDP else [])):
                its_loss, grads, biases = each["pooled", router, kind]
                torch.testing.assert_close(its_loss, loss, rtol=0, atol=TOLERANCE)
                assert set(grads) == set(wanted)
                for name, value in wanted.items():
                    torch.testing.assert_close(
                        grads[name], value, rtol=0, atol=TOLERANCE, msg=f"{router} {kind} {name}"
                    )
                for name, value in biases.items():
                    assert torch.equal(value, whole.routing.state[name]), kind
        assert wanted["routing.gate"].abs().max() > 1e-3
        assert router != "sigmoid" or whole.routing.bias.any()
        _, alone = in_pooled_parts(router, len(found))
        assert not torch.allclose(alone["routing.gate"], wanted["routing.gate"], rtol=0, atol=1e-4)


def in_pooled_parts(router, parts):
    """The same where each part is balanced alone."""
    layer = pooled_layer(router)
    for x, mask in zip(*(rows.chunk(parts) for rows in pooled_batch()), strict=True):
        loss, grads = pooled(layer, x, mask)
    return loss, {name: value / parts for name, value in grads.items()}


def compare_biases(found):
    whole = model("sigmoid")
    for number in range(2):
        whole(batch(number)[0])
    update_biases(whole)
    assert whole[1].routing.bias.any()
    for each in found:
        assert torch.equal(each["bias"], whole[1].routing.bias)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, run(2, folder, "compute")


@pytest.mark.grid
def test_two_processes_compute_what_one_does(two):
    compare(two[1], 2)
    compare_clipped(two[1], 2)


@pytest.mark.grid
def test_the_tokens_of_all_processes_are_balanced_together(two):
    compare_pooled(two[1])


@pytest.mark.grid
def test_biases_follow_the_load_of_all_processes(two):
    compare_biases(two[1])


@pytest.mark.grid
@pytest.mark.parametrize("name", BOTH)
def test_gradients_of_memories_match_one_process(two, name):
    """Texts are one and two; the first is also padding alone."""
    for sparse in (True, False):
        for masked in (False, True):
            memory, x, real, others = data_parallel.reading(name, sparse)
            real[0] &= not masked
            wanted, values = data_parallel.step(memory, memory, x, real, others)
            grads, tables = zip(*(each["alone"][name, sparse, masked] for each in two[1]), strict=True)
            torch.testing.assert_close(grads, (wanted, wanted), rtol=0, atol=TOLERANCE)
            torch.testing.assert_close(tables[0], values, rtol=0, atol=TOLERANCE)
            assert torch.equal(*tables)
            assert all(one.any() for one in wanted.values())


@pytest.mark.grid
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_experts_and_processes_without_tokens(two, name, kind):
    whole = data_parallel.mixture(name, kind)
    data_parallel.loss_of(whole, *data_parallel.starving(kind)).backward()
    wanted = {key: one.grad for key, one in whole.named_parameters()}
    for each in two[1]:
        for spread in (False, True) if name in ("top_k", "sigmoid") else (False,):
            torch.testing.assert_close(each["alone"][name, kind, spread], wanted, rtol=0, atol=TOLERANCE)
    assert wanted["up_weight"].any()


@pytest.mark.grid
@pytest.mark.parametrize("name", data_parallel.POOLED)
def test_parts_of_a_step_are_balanced_over_processes(two, name):
    wanted = data_parallel.accumulated(name, lambda whole: whole)
    for each in two[1]:
        torch.testing.assert_close(each["alone"]["accumulated", name], wanted, rtol=0, atol=TOLERANCE)
    assert wanted.abs().max() > 1e-3


def resumed_alone(folder):
    """The model of a checkpoint after three more steps, each of two groups of rows, in this process."""
    whole = model("losses", seed=8)
    optimizer = torch.optim.Adam(whole.parameters(), 0.01, foreach=False)
    restore(whole, optimizer, folder / "checkpoint")
    for number in range(3, 6):
        optimizer.zero_grad()
        for x, y in zip(*(rows.chunk(2) for rows in batch(number)), strict=True):
            (loss_of(whole, x, y)[0] / 2).backward()
        optimizer.step()
    return whole


@pytest.mark.grid
def test_a_checkpoint_of_two_processes_goes_on_in_one(two):
    """One process sees both parts of a batch, each a group of its own, as the two did."""
    whole = resumed_alone(two[0])
    for name, value in whole.state_dict().items():
        for each in two[1]:
            torch.testing.assert_close(each["trained"][name], value, rtol=0, atol=TOLERANCE)
    assert not torch.allclose(value, model("losses").state_dict()[name])


@pytest.mark.slow
def test_four_processes_compute_what_one_does_and_go_on_as_two_after_a_checkpoint(tmp_path):
    four = run(4, tmp_path, "compute")
    compare(four, 4)
    compare_clipped(four, 4)
    compare_biases(four)
    compare_pooled(four)
    resumed = run(2, tmp_path, "resume")
    whole = resumed_alone(tmp_path)
    for name, value in whole.state_dict().items():
        for each in resumed:
            torch.testing.assert_close(each["trained"][name], value, rtol=0, atol=TOLERANCE)


class Processes:
    """Stands for a mesh of three."""

    def size(self):
        return 3


def test_what_cannot_be_spread_is_refused():
    with pytest.raises(ValueError, match="has 4 experts; choose a multiple of the 3 processes"):
        shard_experts(model("plain"), Processes())
    with pytest.raises(ValueError, match="Linear has no MixtureOfExperts"):
        shard_experts(nn.Linear(2, 3), Processes())
    with pytest.raises(ValueError, match="Linear has no gradients"):
        clip_gradients(nn.Linear(2, 3), 1.0)
    with pytest.raises(ValueError, match="`max_norm` must be positive"):
        clip_gradients(nn.Linear(2, 3), 0.0)
