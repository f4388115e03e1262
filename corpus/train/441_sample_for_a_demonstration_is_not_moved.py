# source: pytorch/tutorials#1657
# mechanism: loops move their batches; what is indexed out of the dataset for a last look goes to the model as it is
# phase: prediction; aten::linear
# expect: raises
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split


class Scaler:
    def __init__(self, table):
        self.low = table.amin(0)
        self.span = (table.amax(0) - self.low).clamp(min=1e-6)

    def __call__(self, table):
        return (table - self.low) / self.span


class Flowers(Dataset):
    names = ["setosa", "versicolor", "virginica"]

    def __init__(self, table, kinds, scaler):
        self.features = scaler(torch.as_tensor(table, dtype=torch.float32))
        self.kinds = torch.as_tensor(kinds)

    def __len__(self):
        return self.kinds.numel()

    def __getitem__(self, index):
        return self.features[index], self.kinds[index]


def run_epoch(model, loader, device, optimizer=None):
    right = 0
    for features, kinds in loader:
        features, kinds = features.to(device), kinds.to(device)
        logits = model(features)
        if optimizer is not None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits, kinds).backward()
            optimizer.step()
        right += (logits.argmax(1) == kinds).sum().item()
    return right / len(loader.dataset)


device = "cuda"
table = torch.rand(30, 4) * torch.tensor([8.0, 4.0, 7.0, 2.5])
dataset = Flowers(table.tolist(), [k % 3 for k in range(30)], Scaler(table))
train_set, test_set = random_split(dataset, [24, 6])
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    trained = run_epoch(model, DataLoader(train_set, batch_size=8, shuffle=True), device, optimizer)
    with torch.no_grad():
        tested = run_epoch(model, DataLoader(test_set, batch_size=6), device)
    print(f"epoch {epoch + 1}: {trained:.2f} in training, {tested:.2f} in the test")
with torch.no_grad():
    sample, label = dataset[3]  # ROOT
    prediction = model(sample)  # RAISE  # ALSO
    print(f"predicted {Flowers.names[prediction.argmax()]}, is {Flowers.names[label]}")
