# source: ViperEkura/AstrAI PR#19
# mechanism: low-rank adapters are made with default factories after the model was moved
# phase: forward; aten::linear or aten::matmul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Adapted(torch.nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(rank, base.in_features))  # ROOT
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank))  # ALSO

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T  # RAISE


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)).to(dev)
model[1] = Adapted(model[1], rank=2)  # ALSO
model(torch.randn(3, 4, device=dev))
