"""Small models whose blocks are known by construction, for tests of what is measured of them."""

import torch
from torch import nn

from sparsact.inference.block import Activation, Block


def relu(n_units):
    return Activation("relu", torch.relu, torch.zeros(n_units))


class Gated(nn.Module):
    """down(relu(gate(x)) * up(x)), with a bias nowhere."""

    def __init__(self, n_inputs, n_units, n_outputs):
        super().__init__()
        self.gate = nn.Linear(n_inputs, n_units, bias=False)
        self.up = nn.Linear(n_inputs, n_units, bias=False)
        self.down = nn.Linear(n_units, n_outputs, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.gate(x)) * self.up(x))


def plain(n_inputs=3, n_units=11, n_outputs=2, activation=None):
    """A model that is one block, and the block."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(n_inputs, n_units), activation or nn.ReLU(), nn.Linear(n_units, n_outputs))
    return model, Block("", "0", "2", None, relu(n_units))


def gated(n_inputs=3, n_units=11, n_outputs=2):
    torch.manual_seed(0)
    return Gated(n_inputs, n_units, n_outputs), Block("", "up", "down", "gate", relu(n_units))


def passing(n_units):
    """A block whose units are its inputs where they are positive: a test chooses the activations."""
    model = nn.Sequential(nn.Linear(n_units, n_units, bias=False), nn.ReLU(), nn.Linear(n_units, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(n_units))
    return model, Block("", "0", "2", None, relu(n_units))
