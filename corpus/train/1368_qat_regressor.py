# source: pytorch/pytorch#47514
# mechanism: observers with buffers are put into a model after the model has been moved to the GPU
# expect: raises
import copy

import torch
from torch import nn


class MinMaxObserver(nn.Module):
    def __init__(self, momentum=0.1, channels=1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("min_val", torch.zeros(channels))
        self.register_buffer("max_val", torch.zeros(channels))
        self.register_buffer("updates", torch.zeros(1))

    def forward(self, x):
        flat = x.detach().reshape(-1, x.shape[-1])
        low, high = flat.amin(0), flat.amax(0)
        rate = 1.0 if not self.training else self.momentum
        self.min_val.copy_(self.min_val + rate * (low - self.min_val))  # RAISE
        self.max_val.copy_(self.max_val + rate * (high - self.max_val))
        self.updates += 1
        return x

    def extra_repr(self):
        return "updates=%d" % int(self.updates.item())


OBSERVED = {nn.Linear: lambda m: MinMaxObserver(channels=m.out_features)}


def _observer_hook(module, inputs, output):
    return module.activation_post_process(output)


def add_observer_(model, mapping):
    for child in list(model.children()):
        add_observer_(child, mapping)
    factory = mapping.get(type(model))
    if factory is None:
        return
    observer = factory(model)  # ALSO
    model.add_module("activation_post_process", observer)  # ROOT
    model.register_forward_hook(_observer_hook)


def prepare(model, mapping=None, inplace=False):
    if not inplace:
        model = copy.deepcopy(model)
    add_observer_(model, mapping or OBSERVED)
    return model


class Regressor(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.register_buffer("offset", torch.full((features,), 0.5))
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x - self.offset))).squeeze(-1)


def fit(model, loader, device, lr=0.05):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def make_loader(n=4, batch=8, features=5):
    xs = torch.rand(n, batch, features)
    return [(x, x.sum(1)) for x in xs]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = make_loader()
    model = Regressor(5, 6).to(device)
    print("float loss %.3f" % fit(model, loader, device))
    qat = prepare(model)  # ALSO
    print("qat loss %.3f" % fit(qat, loader, device))
    print(qat.fc1.activation_post_process)


if __name__ == "__main__":
    main()
