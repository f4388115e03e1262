# source: pytorch/pytorch PR#127783
# mechanism: fake-quantizers are put into a model that is already on the GPU; their scale and zero point are buffers that the constructor makes on the CPU.
# expect: raises
import torch
from torch import nn


class MovingAverageObserver(nn.Module):
    def __init__(self, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.low = self.high = None

    def forward(self, x):
        low, high = x.detach().amin(), x.detach().amax()
        if self.low is None:
            self.low, self.high = low, high
        else:
            self.low = self.low + self.momentum * (low - self.low)
            self.high = self.high + self.momentum * (high - self.high)

    def calculate_qparams(self):
        span = torch.maximum(self.high, self.low.new_zeros(())) - torch.minimum(self.low, self.low.new_zeros(()))
        scale = (span / 255).clamp_min(1e-8)
        return scale.view(1), (-self.low / scale).round().clamp(0, 255).view(1)


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class FakeQuantize(nn.Module):
    def __init__(self, observer):
        super().__init__()
        self.observer = observer
        self.observer_enabled = True
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("zero_point", torch.zeros(1))

    def forward(self, x):
        if self.observer_enabled:
            self.observer(x)
            scale, zero_point = self.observer.calculate_qparams()
            self.scale.copy_(scale)
            self.zero_point.copy_(zero_point)
        scale, zero_point = self.scale, self.zero_point  # ROOT
        q = RoundSTE.apply(x / scale + zero_point)  # RAISE
        return (q.clamp(0, 255) - zero_point) * scale


class QuantLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.act_fq = FakeQuantize(MovingAverageObserver())
        self.weight_fq = FakeQuantize(MovingAverageObserver())  # ALSO

    def forward(self, x):
        return nn.functional.linear(self.act_fq(x), self.weight_fq(self.linear.weight), self.linear.bias)


def prepare_qat(module):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, QuantLinear(child))  # ALSO
        else:
            prepare_qat(child)
    return module


class TinyLM(nn.Module):
    def __init__(self, vocab=20, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.body = nn.Sequential(nn.Linear(dim, 24), nn.GELU(), nn.Linear(24, dim))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + self.body(x))


def train(model, steps, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # ALSO
    for _ in range(steps):
        ids = torch.randint(0, 20, (2, 6), device=device)
        loss = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = TinyLM().to(device)
    print("float", train(model, 2, device))
    model = prepare_qat(model)  # ALSO
    print("qat", train(model, 2, device))


if __name__ == "__main__":
    main()
