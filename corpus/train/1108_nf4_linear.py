# source: huggingface/diffusers#10798
# mechanism: a 4-bit parameter takes its quantization state along when it moves, but the code book inside that state stays on the device where the weight was quantized.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn

NF4 = [-1.0, -0.7, -0.53, -0.39, -0.28, -0.18, -0.09, 0.0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1.0]


class QuantState:
    def __init__(self, absmax, shape, code, block_size):
        self.absmax = absmax
        self.shape = shape
        self.code = code
        self.block_size = block_size

    def to(self, device):
        self.absmax = self.absmax.to(device)  # ROOT
        return self


def quantize_4bit(weight, block_size=8):
    code = torch.tensor(NF4, device=weight.device)
    blocks = weight.reshape(-1, block_size)
    absmax = blocks.abs().amax(dim=1).clamp_min(1e-8)
    scaled = blocks / absmax[:, None]
    index = (scaled[..., None] - code).abs().argmin(dim=-1).to(torch.uint8)
    return index, QuantState(absmax, weight.shape, code, block_size)


def dequantize_4bit(packed, state):
    values = state.code.index_select(0, packed.reshape(-1).long())  # RAISE # ALSO
    values = values.view(-1, state.block_size) * state.absmax[:, None]
    return values.view(state.shape)


class Linear4bit(nn.Module):
    def __init__(self, linear, quant_device):
        super().__init__()
        packed, self.quant_state = quantize_4bit(linear.weight.data.to(quant_device))
        self.weight = nn.Parameter(packed, requires_grad=False)
        self.bias = linear.bias

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.quant_state.to(self.weight.device)
        return self

    def forward(self, x):
        weight = dequantize_4bit(self.weight.data, self.quant_state).to(x.dtype)
        return nn.functional.linear(x, weight, self.bias)


def replace_linears(module, quant_device):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, Linear4bit(child, quant_device))
        else:
            replace_linears(child, quant_device)
    return module


class FeedForward(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))

    def forward(self, x):
        return x + self.fc(self.norm(x))


def load_quantized(quant_device=None):
    if quant_device is None:
        quant_device = torch.device("cuda", torch.cuda.current_device())
    return replace_linears(FeedForward(), quant_device)


def main():
    torch.manual_seed(0)
    model = load_quantized().to("cuda:1").eval()
    with torch.no_grad():
        y = model(torch.randn(3, 16, device="cuda:1"))
    print(y.shape, y.std().item())


if __name__ == "__main__":
    main()
