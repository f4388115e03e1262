# source: pytorch/pytorch#61457, pyro-ppl/pyro PR#3264, huggingface/accelerate PR#1627
# mechanism: the default device is a GPU; a shuffling loader draws there, from a generator that was made for the CPU
# phase: data; aten::randperm
# expect: raises
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader(samples, seed):
    x = torch.randn(samples, 4)
    y = x.sum(-1, keepdim=True)
    generator = torch.Generator().manual_seed(seed)  # ROOT
    return DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, generator=generator)  # ALSO


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for x, y in loader:  # RAISE
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


torch.set_default_device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
train(model, make_loader(16, seed=0), epochs=2)
