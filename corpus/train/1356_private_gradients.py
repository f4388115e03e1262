# source: facebookresearch/CrypTen#426
# mechanism: the backward of a custom autograd function multiplies the gradient by ones that are made on the CPU
# expect: raises
import math

import torch
from torch import nn
from torch.autograd import Function


class FixedPointEncoder:
    def __init__(self, precision_bits=12):
        self.scale = 2 ** precision_bits

    def encode(self, x):
        return (x * self.scale).round()

    def decode(self, x):
        return x / self.scale


class SecureSum(Function):
    @staticmethod
    def forward(ctx, x, encoder):
        ctx.input_size = x.size()
        return encoder.decode(encoder.encode(x).sum(dim=1))

    @staticmethod
    def backward(ctx, grad_output):
        ones = torch.ones(ctx.input_size)  # ROOT
        return grad_output.unsqueeze(1).mul(ones), None  # RAISE # ALSO


class SecureSquare(Function):
    @staticmethod
    def forward(ctx, x, encoder):
        ctx.save_for_backward(x)
        return encoder.decode(encoder.encode(x * x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x, None


class PrivateNorm(nn.Module):
    def __init__(self, features, encoder):
        super().__init__()
        self.encoder = encoder
        self.gain = nn.Parameter(torch.ones(features))
        self.register_buffer("floor", torch.full((1,), 1e-3))

    def forward(self, x):
        squares = SecureSquare.apply(x, self.encoder)
        energy = SecureSum.apply(squares, self.encoder)
        return self.gain * x / (energy.unsqueeze(1) + self.floor).sqrt()


class PrivateClassifier(nn.Module):
    def __init__(self, in_features, classes):
        super().__init__()
        self.fc1 = nn.Linear(in_features, 10)
        self.norm = PrivateNorm(10, FixedPointEncoder())
        self.fc2 = nn.Linear(10, classes)

    def forward(self, x):
        return self.fc2(self.norm(torch.relu(self.fc1(x)) + 0.1))


def share_data(n, features, classes):
    gen = torch.Generator().manual_seed(3)
    x = torch.randn(n, features, generator=gen)
    y = (x[:, 0] > 0).long() % classes
    return x, y


def train(model, data, device, epochs=2):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data[0].to(device), data[1].to(device)
    for _ in range(epochs):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = PrivateClassifier(6, 2).to(device)
    loss = train(model, share_data(12, 6, 2), device)
    assert math.isfinite(loss)
    print("loss %.4f" % loss)


if __name__ == "__main__":
    main()
