# source: pytorch/examples#1078, pytorch/pytorch PR#19084
# mechanism: torch.load() without map_location puts the snapshot where rank 0 saved it, and this is rank 1
# phase: loss; aten::mul
# expect: raises
# needs: 2 GPUs
import io

import torch


class Trainer:
    def __init__(self, rank):
        self.device = torch.device("cuda", rank)
        self.model = torch.nn.Linear(4, 3).to(self.device)
        self.weights = torch.ones(3, device=self.device)

    def save(self, file):
        torch.save({"model": self.model.state_dict(), "weights": self.weights}, file)

    def resume(self, file):
        snapshot = torch.load(file, weights_only=True)  # ROOT
        self.model.load_state_dict(snapshot["model"])
        self.weights = snapshot["weights"]  # ALSO

    def loss(self, x, y):
        logp = self.model(x.to(self.device)).log_softmax(-1)
        chosen = torch.nn.functional.one_hot(y.to(self.device), 3) * self.weights  # RAISE
        return -(chosen * logp).sum(-1).mean()


file = io.BytesIO()
Trainer(rank=0).save(file)
file.seek(0)
trainer = Trainer(rank=1)
trainer.resume(file)
trainer.loss(torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])).backward()
