# source: NVIDIA/Model-Optimizer#1504
# mechanism: the inputs of a layer are captured to the CPU to spare memory, and the replay that calibrates the layer calls it with the captured inputs as they lie
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class AmaxQuantizer(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.register_buffer("amax", torch.zeros(()))
        self.levels = 2 ** (bits - 1) - 1
        self.mode = "off"

    def forward(self, x):
        if self.mode == "calibrate":
            self.amax.copy_(torch.maximum(self.amax, x.detach().abs().amax()))
        if self.mode == "quantize":
            step = self.amax.clamp(min=1e-8) / self.levels
            return (x / step).round().clamp(-self.levels, self.levels) * step
        return x


class QuantLinear(nn.Linear):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.input_quantizer = AmaxQuantizer()

    def forward(self, x):
        return F.linear(self.input_quantizer(x), self.weight, self.bias)  # RAISE


class DecoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = QuantLinear(dim, 2 * dim), QuantLinear(2 * dim, dim)

    def forward(self, hidden, mask):
        out = self.down(torch.relu(self.up(hidden)))
        return hidden + out * mask


class Decoder(nn.Module):
    def __init__(self, vocab=30, dim=8, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        hidden = self.embed(ids)
        for layer in self.layers:
            hidden = layer(hidden, mask=mask)
        return self.head(hidden)


def map_tensors(value, fn):
    if torch.is_tensor(value):
        return fn(value)
    if isinstance(value, dict):
        return {k: map_tensors(v, fn) for k, v in value.items()}
    return type(value)(map_tensors(v, fn) for v in value)


class StopForward(Exception):
    pass


def get_input_activations(model, layer, forward_loop):
    captured = []

    def capture(module, args, kwargs):
        captured.append(map_tensors((args, kwargs), lambda t: t.detach().cpu()))
        raise StopForward

    with layer.register_forward_pre_hook(capture, with_kwargs=True):
        forward_loop(model)
    return captured


def set_mode(module, mode):
    for quantizer in module.modules():
        if isinstance(quantizer, AmaxQuantizer):
            quantizer.mode = mode


def max_calibrate(module, forward_loop):
    set_mode(module, "calibrate")
    forward_loop(module)
    set_mode(module, "quantize")


@torch.no_grad()
def layerwise_calibrate(model, forward_loop):
    for layer in model.layers:
        inputs = get_input_activations(model, layer, forward_loop)

        def layer_forward_loop(module, inputs=inputs):
            for args, kwargs in inputs:  # ROOT
                module(*args, **kwargs)  # ALSO

        max_calibrate(layer, layer_forward_loop)
    return model


def create_forward_loop(batches, device):
    def forward_loop(model):
        for batch in batches:
            try:
                model(batch.to(device))
            except StopForward:
                continue

    return forward_loop


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    forward_loop = create_forward_loop([torch.randint(0, 30, (2, 5)) for _ in range(3)], device)
    max_calibrate(Decoder().to(device), forward_loop)
    model = layerwise_calibrate(Decoder().to(device), forward_loop)
    print(model.layers[0].up.input_quantizer.amax.item())


if __name__ == "__main__":
    main()
