# source: esa/torchquad#157
# mechanism: [generator device] setting up the integration library makes CUDA the default device of the whole process; the shuffling sampler of a data loader that has nothing to do with it draws its permutation there with its own CPU generator
# phase: first batch of training; failing op: torch.randperm ("Expected a 'cuda' device type for generator but found 'cpu'")
# expect: raises
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device("cuda", 0)


def enable_cuda(data_type=torch.float32):
    if torch.cuda.is_available():
        torch.set_default_device(dev)  # ROOT
    torch.set_default_dtype(data_type)

def set_up_backend(backend, data_type=torch.float32):
    if backend == "torch":
        enable_cuda(data_type)

class Trapezoid:
    def integrate(self, fn, dim, n, domain):
        axes = [torch.linspace(a, b, n) for a, b in domain[:dim]]
        grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).view(-1, dim)
        volume = (domain[0][1] - domain[0][0]) ** dim
        return fn(grid).mean() * volume

def fit(model, loader, epochs=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in loader:  # RAISE
            loss = (model(x.to(dev)) - y.to(dev)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

x = torch.randn(8, 2)
train = DataLoader(TensorDataset(x, x.prod(1, keepdim=True)), batch_size=4, shuffle=True)
net = nn.Linear(2, 1).to(dev)
fit(net, train)
set_up_backend("torch")
Trapezoid().integrate(lambda g: net(g).squeeze(-1), 2, 5, [[-1, 1]] * 2)
fit(net, train)
