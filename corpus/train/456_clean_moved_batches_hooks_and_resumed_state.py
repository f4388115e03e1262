# source: none; what loops, hooks, loaders, samples and resumed optimizers do when they do it right
# mechanism: moved fields are stored, hooks get vectors of the GPU, state is restored after the move, batches are pinned
# phase: training
# expect: clean
import io

import torch
from torch import nn

dev = torch.device("cuda", 0)


def make_model():
    return nn.Sequential(nn.Linear(9, 6), nn.ReLU(), nn.Linear(6, 2))


def steer(model, file):
    shifts = torch.load(file, map_location=dev)
    for name, shift in shifts.items():
        def push(module, inputs, output, shift=shift):
            return output + 0.1 * shift
        model.get_submodule(name).register_forward_hook(push)


def stored(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def train(model, optimizer, loader):
    total = torch.zeros(1, device=dev)
    for batch in loader:
        for key, value in batch.items():
            batch[key] = value.to(dev, non_blocking=True)
        loss = nn.functional.cross_entropy(model(batch["pixels"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return float(total.cpu()) / len(loader)


dataset = [{"pixels": torch.rand(9), "label": torch.tensor(k % 2)} for k in range(12)]
loader = torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True, pin_memory=True)
model = make_model().to(dev)
optimizer = torch.optim.Adam(model.parameters())
train(model, optimizer, loader)
saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
state = torch.load(stored(saved), map_location="cpu")
model = make_model()
model.load_state_dict(state["model"])
model.to(dev)
optimizer = torch.optim.Adam(model.parameters())
optimizer.load_state_dict(state["optimizer"])
steer(model, stored({"0": torch.ones(6), "2": torch.ones(2)}))
print(train(model, optimizer, loader))
sample = dataset[3]
print(model(sample["pixels"].to(dev)).argmax().item() == sample["label"].item())
