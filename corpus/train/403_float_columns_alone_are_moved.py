# source: pytorch forum, replay buffer with integer actions
# mechanism: a buffer moves the columns of floats, and hands those of integers on as they are
# phase: forward; aten::gather
# expect: raises
import random

import torch
from torch import nn


class Buffer:
    COLUMNS = ("state", "action", "reward")

    def __init__(self, device):
        self.rows, self.device = [], device

    def sample(self, count):
        batch = {}
        for name, column in zip(self.COLUMNS, zip(*random.sample(self.rows, count))):
            batch[name] = torch.stack(column) if torch.is_tensor(column[0]) else torch.tensor(column)  # ALSO
        return {k: v.to(self.device) if v.is_floating_point() else v for k, v in batch.items()}  # ROOT


buffer = Buffer("cuda")
for _ in range(16):
    buffer.rows.append((torch.rand(4), random.randrange(3), random.random()))
values = nn.Linear(4, 3).to("cuda")
batch = buffer.sample(8)
chosen = values(batch["state"]).gather(1, batch["action"][:, None])  # RAISE
(chosen.squeeze(1) - batch["reward"]).pow(2).mean().backward()
