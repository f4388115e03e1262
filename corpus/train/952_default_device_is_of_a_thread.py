# source: Unity-Technologies/ml-agents PR#6245 (ModelUtils.list_to_tensor and its kin allocate on default_device(), for threaded trainers)
# mechanism: [default device] the default device is set in the main thread, a trainer's thread makes its tensors on the CPU
# phase: rollout statistics in a worker thread; failing op: aten::sub
# expect: raises
# root: torch_entities/utils.py:list_to_tensor: no device given
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


def list_to_tensor(values):
    return torch.tensor(values, dtype=torch.float32)   # ROOT


class Trainer:
    def __init__(self):
        torch.set_default_device(dev)
        self.critic = nn.Linear(2, 1)

    def advance(self, trajectory):
        obs = torch.ones(len(trajectory), 2, device=self.critic.weight.device)
        returns = list_to_tensor(trajectory)  # ALSO
        values = self.critic(obs).squeeze(-1)
        return (returns - values).pow(2).mean()        # RAISE

trainer = Trainer()
trainer.advance([0.5, 1.0])
with ThreadPoolExecutor(1) as pool:  # ALSO
    pool.submit(trainer.advance, [1.0, 0.0, 2.0]).result()
