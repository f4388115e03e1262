# source: none: a correct program
# mechanism: none; activations and gradients cross devices by explicit copies
# phase: n/a
# expect: clean
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)

bottom, top = torch.nn.Linear(4, 4).to(first), torch.nn.Linear(4, 1).to(second)
optimizer = torch.optim.SGD([*bottom.parameters(), *top.parameters()], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    out = top(bottom(torch.ones(2, 4, device=first)).relu().to(second))
    out.sum().backward()
    optimizer.step()
assert bottom.weight.grad.device == first and top.weight.grad.device == second
