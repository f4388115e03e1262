# source: pytorch/pytorch#103256 #104767 #111123; huggingface/transformers#24708 #26171; FoundationVision/VAR#127 (fix: pytorch/pytorch PR#102619)
# mechanism: [optimizer state load] checkpoint read with map_location="cpu"; the restore casts every state to the parameter's device except "step", which the fused kernel needs on the GPU
# phase: checkpoint load -> optimizer step; failing op: _fused_adamw_ (argument state_steps)
# expect: raises
import os
import tempfile

import torch
import torch.nn as nn

device = torch.device("cuda:0")

class TrainerState:
    def __init__(self):
        self.model = nn.Linear(4, 2).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)

    def train_step(self, batch):
        self.model(batch).square().mean().backward()
        self.optimizer.step()  # RAISE
        self.optimizer.zero_grad()

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

    def cast(self, param, value, key):
        if key == "step" or not torch.is_tensor(value):  # ROOT
            return value  # ALSO
        return value.to(dtype=param.dtype, device=param.device)

    def resume(self, path):
        saved = torch.load(path, map_location="cpu")  # ALSO
        self.model.load_state_dict(saved["model"])
        for param, state in zip(self.model.parameters(), saved["optimizer"]["state"].values()):
            self.optimizer.state[param] = {key: self.cast(param, value, key) for key, value in state.items()}

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "optimizer.pt")
    first = TrainerState()
    first.train_step(torch.randn(3, 4, device=device))
    first.save(path)
    second = TrainerState()
    second.resume(path)
second.train_step(torch.randn(3, 4, device=device))
