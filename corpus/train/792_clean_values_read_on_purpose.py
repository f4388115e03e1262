# source: clean control, must not be reported
# mechanism: none; the program asks for host values in so many words: item, tolist, cpu, numpy, bool, shapes as Python numbers
# phase: n/a
# expect: clean
import torch

dev = torch.device("cuda", 0)


scores = torch.randn(6, 4, device=dev)
best = scores.max().item()
picks = scores.argmax(1).tolist()
rows = [scores[i, j].item() for i, j in enumerate(picks)]
host = scores.detach().cpu()
mean = host.numpy().mean()
width = int(scores.shape[1])
if bool((scores > best - 1e-6).any()):
    scores = scores - best
counts = torch.bincount(torch.tensor(picks), minlength=width)
weights = torch.tensor(rows, device=dev) * float(mean)
out = scores[:len(picks)] * weights[:, None] + counts.to(dev)
