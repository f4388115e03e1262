# source: ARISE-Initiative/robomimic PR#81
# mechanism: [data not moved] statistics per modality, in a nested dictionary of the data set, stay on the host; each batch goes to the GPU and is normalised there
# phase: training step; failing op: aten::sub
# expect: raises
import numpy as np
import torch
import torch.nn as nn

device = torch.device("cuda:0")


class Demonstrations:
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.obs = {"joints": rng.normal(1.0, 2.0, (n, 7)).astype("f"), "gripper": rng.random((n, 2), dtype="f")}
        self.actions = rng.normal(size=(n, 3)).astype("f")

    def statistics(self):
        return {k: {"offset": v.mean(0), "scale": v.std(0) + 1e-3} for k, v in self.obs.items()}

    def batches(self, size):
        for i in range(0, len(self.actions), size):
            yield {k: v[i:i + size] for k, v in self.obs.items()}, self.actions[i:i + size]


def to_torch(tree, where="cpu"):  # ALSO
    if isinstance(tree, dict):
        return {k: to_torch(v, where) for k, v in tree.items()}
    return torch.from_numpy(tree).to(where)


def whiten(obs, stats):
    return {k: (v - stats[k]["offset"]) / stats[k]["scale"] for k, v in obs.items()}  # RAISE


demos = Demonstrations(32)
stats = to_torch(demos.statistics())  # ROOT
policy = nn.Linear(9, 3).to(device)
opt = torch.optim.Adam(policy.parameters())
for obs, act in demos.batches(8):
    obs, act = whiten(to_torch(obs, device), stats), to_torch(act, device)
    loss = (policy(torch.cat([obs["joints"], obs["gripper"]], -1)) - act).abs().mean()
    opt.zero_grad(), loss.backward(), opt.step()
