# source: https://github.com/pytorch/pytorch/issues/1989
# expect: clean
# Logging, early stopping and masks: the program asks for what it gets.
import torch

device = torch.device("cuda", 0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history, best = [], torch.tensor(1e9, device=device)
names = ["a", "b", "c"]
for step in range(3):
    inputs, labels = torch.randn(5, 4, device=device), torch.randint(0, 3, (5,), device=device)
    logits = model(inputs)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    print("finite", bool(torch.isfinite(loss)), f"{loss:.1f}" != "")
    if loss < best:
        best = loss.detach()
    right = logits.argmax(-1) == labels
    wrong = inputs[~right]
    where = right.nonzero()
    inputs[right] = 0.0
    first = names[labels[0].item()]
    values = [float(value) for value in logits[0].detach()]
    floor = torch.full((3,), min(values), device=device)
    scale = torch.full((3,), loss.item())
    count = int(right.sum())
    half = inputs[: max(count, 1)]
    rows = logits.cpu().tolist()
    table = torch.arange(10)[labels.cpu()]
    picked = torch.arange(10, device=device)[labels]
print(repr(best)[:6], max(history) > 0, sorted([best, loss])[0] <= best)
