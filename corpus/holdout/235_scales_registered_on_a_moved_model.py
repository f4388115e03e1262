# source: vllm-project/compressed-tensors PR#12
# mechanism: a quantizer adds its scale to layers that are on the GPU already; a custom operator meets both
# phase: forward; aten::mul inside a custom operator
# expect: raises
import torch

dev = torch.device("cuda", 0)


@torch.library.custom_op("example::dequantize", mutates_args=())
def dequantize(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return weight.to(scale.dtype) * scale  # RAISE


class QuantizedLinear(torch.nn.Module):
    def __init__(self, linear, bits):
        super().__init__()
        top = 2 ** (bits - 1) - 1
        largest = linear.weight.detach().abs().amax(1, keepdim=True)
        self.register_buffer("weight", (linear.weight.detach() / largest * top).round().to(torch.int8))
        self.register_buffer("scale", torch.ones(linear.out_features, 1))  # ROOT
        self.scale.copy_(largest / top)  # ALSO
        self.bias = linear.bias

    def forward(self, x):
        return torch.nn.functional.linear(x, dequantize(self.weight, self.scale), self.bias)


def quantize(model, bits=8):
    for name, child in model.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(model, name, QuantizedLinear(child, bits))  # ALSO
        else:
            quantize(child, bits)
    return model


model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(dev)
with torch.no_grad():
    quantize(model)(torch.randn(3, 4, device=dev))
