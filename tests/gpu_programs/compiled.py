"""A training that inductor compiles into CUDA graphs."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), capturable=True)
x = torch.randn(32, 64, device="cuda")
compiled = torch.compile(net, mode="reduce-overhead")
for _ in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    loss = compiled(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item():.6f}")
