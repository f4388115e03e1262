# source: Xilinx/brevitas#339
# mechanism: in export mode a custom function stands for a quantized convolution and returns an empty tensor on the CPU, which the next layer meets on the GPU
# expect: raises
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd import Function


class QuantizedConvPlaceholder(Function):
    @staticmethod
    def forward(ctx, x, int_weight, scale, out_shape):
        return torch.empty(out_shape, dtype=torch.float)  # ROOT


class QuantConv2d(nn.Conv2d):
    def __init__(self, *args, bits=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.bits = bits
        self.export_mode = False
        self.records = []

    def weight_scale(self):
        return self.weight.detach().abs().amax() / (2 ** (self.bits - 1) - 1)

    def quant_weight(self):
        scale = self.weight_scale()
        return (torch.round(self.weight / scale) * scale - self.weight).detach() + self.weight

    def output_shape(self, x):
        sizes = []
        for i, n in enumerate(x.shape[2:]):
            k, s, p = self.kernel_size[i], self.stride[i], self.padding[i]
            sizes.append((n + 2 * p - k) // s + 1)
        return (x.shape[0], self.out_channels, *sizes)

    def forward(self, x):
        if self.export_mode:
            scale = self.weight_scale()
            int_weight = torch.round(self.weight.detach() / scale).to(torch.int8)
            self.records.append({"weight": int_weight.cpu(), "scale": float(scale)})
            return QuantizedConvPlaceholder.apply(x, int_weight, scale, self.output_shape(x))  # ALSO
        return self._conv_forward(x, self.quant_weight(), self.bias)


class ChannelScale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return torch.relu(x * self.gain.view(1, -1, 1, 1) + self.shift.view(1, -1, 1, 1))  # RAISE


class QuantNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(
            QuantConv2d(1, 4, 3, padding=1, bias=False), ChannelScale(4),
            QuantConv2d(4, 4, 3, stride=2, bias=False), ChannelScale(4),
        )
        self.head = nn.Linear(4, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class ExportManager:
    @staticmethod
    def quant_layers(model):
        return [m for m in model.modules() if isinstance(m, QuantConv2d)]

    @classmethod
    @contextmanager
    def exporting(cls, model):
        for layer in cls.quant_layers(model):
            layer.export_mode = True
        try:
            yield
        finally:
            for layer in cls.quant_layers(model):
                layer.export_mode = False

    @classmethod
    def export(cls, model, example):
        model.eval()
        with torch.no_grad(), cls.exporting(model):
            model(example)
        return [record for layer in cls.quant_layers(model) for record in layer.records]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = QuantNet().to(device)
    images, labels = torch.randn(4, 1, 8, 8, device=device), torch.tensor([0, 1, 2, 1], device=device)
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    records = ExportManager.export(model, images[:1])
    print("loss %.3f, exported %d layers" % (loss.item(), len(records)))


if __name__ == "__main__":
    main()
