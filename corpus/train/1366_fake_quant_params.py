# source: pytorch/pytorch#135204
# mechanism: a helper computes the scales of a quantizer on the GPU and takes their maximum with an epsilon tensor that its caller made on the CPU
# expect: raises
from typing import Optional, Tuple

import torch
from torch import nn

EPS = torch.finfo(torch.float32).eps


def determine_qparams(
    min_val: torch.Tensor,
    max_val: torch.Tensor,
    quant_min: int,
    quant_max: int,
    eps: torch.Tensor,
    symmetric: bool = False,
) -> Tuple[torch.Tensor, torch.Tensor]:
    min_neg = torch.min(min_val, torch.zeros_like(min_val))
    max_pos = torch.max(max_val, torch.zeros_like(max_val))
    device = min_neg.device
    zero_point = torch.zeros(min_neg.size(), dtype=torch.int64, device=device)
    if symmetric:
        max_pos = torch.max(-min_neg, max_pos)
        scale = max_pos / (float(quant_max - quant_min) / 2)
        scale = torch.max(scale, eps)  # RAISE # ROOT
        return scale, zero_point
    scale = (max_pos - min_neg) / float(quant_max - quant_min)
    scale = torch.max(scale, eps.to(device))
    zero_point = quant_min - torch.round(min_neg / scale).to(torch.int64)
    return scale, zero_point.clamp(quant_min, quant_max)


class WeightQuantizer:
    def __init__(self, bits: int = 8, symmetric: bool = True, eps: Optional[float] = None):
        self.quant_min, self.quant_max = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        self.symmetric = symmetric
        self.eps = torch.tensor([eps or EPS])

    def qparams(self, weight: torch.Tensor):
        flat = weight.detach().flatten(1)
        return determine_qparams(
            flat.amin(1), flat.amax(1), self.quant_min, self.quant_max, self.eps, self.symmetric  # ALSO
        )

    def __call__(self, weight: torch.Tensor) -> torch.Tensor:
        scale, zero_point = self.qparams(weight)
        shape = (-1,) + (1,) * (weight.dim() - 1)
        scale, zero_point = scale.view(shape), zero_point.view(shape)
        q = (weight / scale).round() + zero_point
        q = q.clamp(self.quant_min, self.quant_max)
        return weight + ((q - zero_point) * scale - weight).detach()


class QuantLinear(nn.Linear):
    def __init__(self, in_features, out_features, quantizer):
        super().__init__(in_features, out_features)
        self.quantizer = quantizer

    def forward(self, x):
        return nn.functional.linear(x, self.quantizer(self.weight), self.bias)


def build_model(bits=4):
    return nn.Sequential(
        QuantLinear(6, 12, WeightQuantizer(bits)), nn.ReLU(), QuantLinear(12, 1, WeightQuantizer(8))
    )


def train(model, device, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = torch.randn(16, 6, device=device)
    y = x.sum(1, keepdim=True)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model().to(device)
    print("loss %.3f" % train(model, device))


if __name__ == "__main__":
    main()
