# source: none; what a loop assigns to its own variable is forgotten with the next turn
# mechanism: a loop over the fields of a batch moves each and gives the result to the loop's variable alone
# phase: forward; aten::linear
# expect: raises
from typing import NamedTuple

import torch
from torch import nn

device = torch.device("cuda", torch.cuda.current_device())


class Molecules(NamedTuple):
    atoms: torch.Tensor
    bonds: torch.Tensor
    owner: torch.Tensor
    energy: torch.Tensor


def draw(molecules, size, kinds=5):
    atoms = torch.nn.functional.one_hot(torch.randint(0, kinds, (molecules * size,)), kinds).float()
    owner = torch.arange(molecules).repeat_interleave(size)
    ring = torch.arange(size).roll(-1)
    bonds = torch.cat([torch.stack([torch.arange(size), ring]) + size * m for m in range(molecules)], dim=1)
    return Molecules(atoms, bonds, owner, torch.randn(molecules))


class Energy(nn.Module):
    def __init__(self, kinds=5, width=16):
        super().__init__()
        self.embed = nn.Linear(kinds, width)
        self.message = nn.Linear(2 * width, width)
        self.read = nn.Linear(width, 1)

    def forward(self, atoms, bonds, owner, count):
        state = torch.relu(self.embed(atoms))  # RAISE
        source, target = bonds
        sent = torch.tanh(self.message(torch.cat([state[source], state[target]], dim=-1)))
        state = state.index_add(0, target, sent)
        return state.new_zeros(count).index_add(0, owner, self.read(state).squeeze(-1))


energy = Energy().to(device)
optimizer = torch.optim.Adam(energy.parameters())
for round_number in range(4):
    batch = draw(molecules=3, size=6)  # ALSO
    for name, field in zip(batch._fields, batch):
        if torch.is_tensor(field):
            field = field.to(device, non_blocking=False)  # ROOT
    guess = energy(batch.atoms, batch.bonds, batch.owner, len(batch.energy))
    optimizer.zero_grad()
    (guess - batch.energy).abs().mean().backward()
    optimizer.step()
