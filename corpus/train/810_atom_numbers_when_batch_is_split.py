# source: TorchSim/torch-sim PR#508
# mechanism: [factory call without device=] splitting a batched state numbers the atoms of each system with torch.arange() and no device and hands the numbers to the constraint, whose own atom list is on CUDA
# phase: splitting a batch; failing op: aten::isin
# expect: raises
import torch

dev = torch.device("cuda", 0)


class FixAtoms:
    def __init__(self, atom_idx):
        self.atom_idx = atom_idx

    def select_sub_constraint(self, atom_idx):
        keep = torch.isin(self.atom_idx, atom_idx)  # RAISE  # ALSO
        return FixAtoms(self.atom_idx[keep] - atom_idx.min())

class SimState:
    def __init__(self, positions, system_idx, constraints=()):
        self.positions, self.system_idx, self.constraints = positions, system_idx, constraints

def split_state(state, sizes):
    states, first = [], 0
    for chunk in state.positions.split(sizes):
        last = first + len(chunk)
        atom_idx = torch.arange(first, last)  # ROOT
        fixed = [c.select_sub_constraint(atom_idx) for c in state.constraints]  # ALSO
        states.append(SimState(chunk, torch.zeros_like(state.system_idx[first:last]), fixed))
        first = last
    return states

idx = torch.tensor([0, 0, 0, 1, 1], device=dev)
batch = SimState(torch.randn(5, 3, device=dev), idx)
split_state(batch, [3, 2])
batch.constraints = [FixAtoms(torch.tensor([1, 4], device=dev))]
split_state(batch, [3, 2])
