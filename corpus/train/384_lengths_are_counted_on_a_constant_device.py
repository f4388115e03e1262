# source: NVIDIA-NeMo/Speech PR#8084
# mechanism: a mask is made on a module's constant, "cuda" wherever there is a GPU, in a program that works on the CPU
# phase: forward; aten::lt
# expect: raises
import torch
from torch import nn

PLACE = "cuda" if torch.cuda.is_available() else "cpu"


class Pooled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)

    def mask(self, lengths, size):
        steps = torch.arange(size, device=PLACE)  # ROOT
        return steps[None, :] < lengths[:, None]  # RAISE

    def forward(self, x, lengths):
        kept = self.mask(lengths, x.shape[1])
        return (self.project(x) * kept[..., None]).sum(1)


model = Pooled(4)
print(model(torch.rand(2, 6, 4), torch.tensor([6, 3])))
