# source: LucasAlegre/morl-baselines PR#185, openai/baselines#938
# mechanism: the priorities are brought to the host for a tree in NumPy; the indices that go with them are not
# phase: replay; Tensor.__array__
# expect: raises
import numpy as np
import torch


class SumTree:
    def __init__(self, size):
        self.leaves = np.ones(size)

    def update(self, where, values):
        where, first = np.unique(where, return_index=True)  # RAISE
        self.leaves[where] = values[first]


class Replay:
    def __init__(self, size):
        self.tree = SumTree(size)

    def sample(self, count, device):
        chosen = np.random.choice(len(self.tree.leaves), count)
        return torch.as_tensor(chosen, device=device)

    def update_priorities(self, indices, priorities):
        self.tree.update(indices, priorities + 1e-5)  # ALSO


critic = torch.nn.Linear(3, 1).to("cuda")
replay = Replay(8)
for _ in range(2):
    indices = replay.sample(4, "cuda")
    error = critic(torch.randn(4, 3, device="cuda")).squeeze(1).detach().abs()
    replay.update_priorities(indices, error.cpu().numpy())  # ROOT
