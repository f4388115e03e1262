# source: none: a correct program
# mechanism: none; snapshots loaded onto the CPU or the rank's GPU, then given to model, optimizer, average and scaler
# phase: n/a
# expect: clean
# needs: 2 GPUs
import copy
import io

import torch


class Average(torch.nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


class Trainer:
    def __init__(self, rank):
        self.device = torch.device("cuda", rank)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
        self.average = Average(self.model, 0.9)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.model.to(self.device)
        self.average.to(self.device)
        self.scaler = torch.amp.GradScaler("cuda")

    def parts(self):
        return {name: getattr(self, name) for name in ("model", "average", "optimizer", "scaler")}

    def step(self):
        loss = self.model(torch.randn(6, 4, device=self.device)).pow(2).mean()
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.average.update(self.model)
        return loss.item()

    def save(self, file):
        torch.save({name: part.state_dict() for name, part in self.parts().items()}, file)

    def resume(self, file, place):
        state = torch.load(file, map_location=place, weights_only=True)
        for name, part in self.parts().items():
            part.load_state_dict(state[name])


first = Trainer(rank=0)
for _ in range(2):
    first.step()
file = io.BytesIO()
first.save(file)
for place in ("cpu", torch.device("cuda", 1)):
    file.seek(0)
    trainer = Trainer(rank=1)
    trainer.resume(file, place)
    assert trainer.step() >= 0
