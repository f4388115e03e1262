# source: pytorch/pytorch#44714, pytorch/pytorch#137940
# mechanism: the default device is set for the model's sake; the loader's sampler draws there with a CPU generator
# phase: data; aten::randperm
# expect: raises
import torch
from torch.utils.data import DataLoader, TensorDataset


def fit(model, samples):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(samples, batch_size=4, shuffle=True):  # RAISE  # ALSO
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def linear_on_gpu(inputs):
    torch.set_default_device("cuda")  # ROOT
    return torch.nn.Linear(inputs, 1)


fit(linear_on_gpu(3), TensorDataset(torch.randn(8, 3), torch.randn(8, 1)))
