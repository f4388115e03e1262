# source: https://github.com/constantinpape/torch-em/pull/357
# expect: silent
# kinds: unpinned-async-copy
# The trainer asks for asynchronous copies; the loader gives it pageable batches.
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda", 0)
data = TensorDataset(torch.randn(12, 6), torch.randint(0, 2, (12,)))
model = torch.nn.Linear(6, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, labels in DataLoader(data, batch_size=4):  # ROOT
    inputs = inputs.to(device, non_blocking=True)  # RAISE
    labels = labels.to(device)
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
