# source: https://github.com/coreweave/tensorizer/issues/90
# mechanism: weights are put into the module straight on the GPU; buffers that no checkpoint has stay where it was made
# phase: inference; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Rotary(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        frequencies = 1.0 / 100 ** (torch.arange(0, width, 2).float() / width)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, positions):
        angles = positions.float()[:, None] * self.frequencies  # RAISE
        return torch.cat((angles.cos(), angles.sin()), dim=-1)


class Encoder(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.rotary = Rotary(width)
        self.mix = torch.nn.Linear(width, width)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.mix(self.words(ids) + self.rotary(positions))


def load_into(module, weights, device):
    for name, child in module.named_modules():
        for key in list(child._parameters):
            if child._parameters[key] is not None:
                value = weights[f"{name}.{key}"].to(device)
                child._parameters[key] = torch.nn.Parameter(value, requires_grad=False)
    return module.eval()  # ALSO


weights = Encoder(10, 8).state_dict()
model = Encoder(10, 8)  # ROOT
load_into(model, weights, dev)  # ALSO
model(torch.tensor([[1, 2, 3]], device=dev))
