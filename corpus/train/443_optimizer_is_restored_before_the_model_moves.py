# source: pytorch/pytorch#8741
# mechanism: an optimizer's state goes to where the parameters are when it is restored; the model is moved only then
# phase: first step after resuming; aten::_foreach_lerp_
# expect: raises
import pathlib
import tempfile

import torch
from torch import nn, optim


class Session:
    def __init__(self, folder, device):
        self.path = pathlib.Path(folder) / "session.pt"
        self.device = torch.device(device)
        self.model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 1))  # ALSO
        self.optimizer = optim.Adam(self.model.parameters(), lr=3e-3, betas=(0.9, 0.95))
        self.step_count = 0
        if self.path.exists():
            self.resume()  # ALSO
        self.model.to(self.device)  # ALSO

    def resume(self):
        saved = torch.load(self.path, map_location="cpu")
        self.step_count = saved["step_count"]
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])  # ROOT
        print(f"resumed after {self.step_count} steps")

    def save(self):
        parts = {"step_count": self.step_count}
        for name in ("model", "optimizer"):
            parts[name] = getattr(self, name).state_dict()
        torch.save(parts, self.path)

    def fit(self, steps):
        while steps:
            x = torch.randn(16, 6, device=self.device)
            loss = nn.functional.huber_loss(self.model(x), x.prod(dim=1, keepdim=True))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # RAISE
            self.step_count += 1
            steps -= 1
        return self


with tempfile.TemporaryDirectory() as folder:
    Session(folder, "cuda").fit(3).save()
    Session(folder, "cuda").fit(3).save()
