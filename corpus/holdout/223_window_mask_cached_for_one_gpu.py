# source: XPU-Forces/mojo_opset PR#390 (review), nagadomi/nunif PR#427
# mechanism: a mask is made on the first caller's device and kept under a key without one; the next layer's GPU differs
# phase: forward; aten::masked_fill
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)
masks = {}


def window_mask(length, window, device):
    key = (length, window)  # ROOT
    if key not in masks:
        distance = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)
        masks[key] = (distance < 0) | (distance >= window)
    return masks[key]  # ALSO


class Layer(torch.nn.Module):
    def __init__(self, width, window):
        super().__init__()
        self.mix = torch.nn.Linear(width, 3 * width)
        self.window = window

    def forward(self, x):
        query, key, value = self.mix(x).chunk(3, -1)
        hidden = window_mask(x.shape[1], self.window, x.device)
        scores = (query @ key.transpose(-1, -2)).masked_fill(hidden, float("-inf"))  # RAISE
        return x + scores.softmax(-1) @ value


layers = [Layer(4, window=3).to(first), Layer(4, window=3).to(second)]


def encode(x):
    for layer in layers:
        x = layer(x.to(layer.mix.weight.device))
    return x


encode(torch.randn(2, 6, 4))
