# source: pytorch/pytorch#145995 #62961
# mechanism: a trace keeps the device of the example as a constant, so the table is made there however it is called
# phase: inference; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


def timestep_embedding(timesteps, width):  # ALSO
    frequencies = torch.arange(width, dtype=torch.float32, device=timesteps.device)
    return timesteps[:, None] * torch.exp(-frequencies)


class Denoiser(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        example = (torch.zeros(2), torch.tensor(width))
        self.embed = torch.jit.trace(timestep_embedding, example, check_trace=False)  # ROOT
        self.mix = torch.nn.Linear(width, width)
        self.width = torch.tensor(width)

    def forward(self, timesteps):
        return self.mix(self.embed(timesteps, self.width))  # RAISE


model = Denoiser(8).to(dev)
with torch.no_grad():
    for k in range(2):
        model(torch.full((4,), float(k), device=dev))
