# source: pytorch/executorch PR#14978
# mechanism: the quantization parameters of a bias are derived from those of input and weight; the product of the scales is on the GPU, the zero points are made anew on the CPU.
# expect: raises
import torch
from torch import nn


class PerTensorObserver(nn.Module):
    def __init__(self, qmin=-128, qmax=127):
        super().__init__()
        self.qmin, self.qmax = qmin, qmax
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))

    def forward(self, x):
        self.low = torch.minimum(self.low, x.detach().amin().view(1))
        self.high = torch.maximum(self.high, x.detach().amax().view(1))
        return x

    def calculate_qparams(self):
        scale = ((self.high - self.low) / (self.qmax - self.qmin)).clamp_min(1e-8)
        return scale, (self.qmin - self.low / scale).round()


class PerChannelObserver(nn.Module):
    def __init__(self, channels, qmax=127):
        super().__init__()
        self.qmax = qmax
        self.register_buffer("peak", torch.zeros(channels))

    def forward(self, weight):
        self.peak = torch.maximum(self.peak, weight.detach().abs().amax(dim=1))
        return weight

    def calculate_qparams(self):
        scale = (self.peak / self.qmax).clamp_min(1e-8)
        return scale, torch.zeros_like(scale)


def derive_bias_qparams(observers):
    act_scale, _ = observers[0].calculate_qparams()
    weight_scale, _ = observers[1].calculate_qparams()
    derived_scale = act_scale * weight_scale
    derived_zero = torch.zeros(derived_scale.size())  # ROOT
    return derived_scale, derived_zero  # ALSO


def fake_quantize(x, scale, zero_point, qmin, qmax, axis=None):
    if axis is not None:
        shape = [1] * x.dim()
        shape[axis] = -1
        scale, zero_point = scale.view(shape), zero_point.view(shape)
    q = (x / scale + zero_point).round().clamp(qmin, qmax)  # RAISE
    return (q - zero_point) * scale


class ObservedLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.act = PerTensorObserver()
        self.weight_observer = PerChannelObserver(linear.out_features)
        self.calibrating = True

    def forward(self, x):
        if self.calibrating:
            self.act(x)
            self.weight_observer(self.linear.weight)
            return self.linear(x)
        x = fake_quantize(x, *self.act.calculate_qparams(), -128, 127)
        weight = fake_quantize(self.linear.weight, *self.weight_observer.calculate_qparams(), -127, 127, axis=0)
        scale, zero = derive_bias_qparams([self.act, self.weight_observer])
        bias = fake_quantize(self.linear.bias, scale, zero, -(2**31), 2**31 - 1, axis=0)
        return nn.functional.linear(x, weight, bias)


def prepare(model):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, ObservedLinear(child))
    return model


def convert(model):
    for module in model.modules():
        if isinstance(module, ObservedLinear):
            module.calibrating = False
    return model


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = prepare(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))).to(device).eval()
    data = [torch.randn(4, 8, device=device) for _ in range(3)]
    with torch.no_grad():
        reference = [model(x) for x in data]
        quantized = [convert(model)(x) for x in data]
    print(max((a - b).abs().max().item() for a, b in zip(reference, quantized)))


if __name__ == "__main__":
    main()
