# source: none: a correct program
# mechanism: none; 0-dim CPU tensors, CPU indices and Python numbers beside CUDA tensors, where PyTorch allows them
# phase: n/a
# expect: clean
import torch

dev = torch.device("cuda", 0)


class Balance:
    """Weighs losses by how large they were; its numbers live on the CPU."""

    def __init__(self, names):
        self.means = {name: torch.tensor(1.0) for name in names}

    def __call__(self, losses):
        total = sum(loss / self.means[name] for name, loss in losses.items())
        for name, loss in losses.items():
            self.means[name] = 0.9 * self.means[name] + 0.1 * loss.item()
        return total


model = torch.nn.Linear(6, 4).to(dev)
optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(1e-2), foreach=False)
balance, margin = Balance(["fit", "size"]), torch.tensor(0.1)
chosen = torch.tensor([0, 2])
for _ in range(3):
    out = model(torch.randn(5, 6, device=dev))
    picked = out[:, chosen]
    kept = torch.where(picked > margin, picked, torch.tensor(0.0))
    losses = {"fit": (kept - margin).pow(2).mean(), "size": out.abs().mean().clamp(min=0.01)}
    optimizer.zero_grad()
    balance(losses).backward()
    optimizer.step()
totals = torch.zeros(4)
totals += out.detach().mean(0).cpu()
totals[chosen] *= 2
