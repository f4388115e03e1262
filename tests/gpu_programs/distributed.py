"""A data-parallel training with NCCL, in mixed precision, and a collective that is captured into a graph.

To be started by torchrun with one process: what one GPU can tell of collectives.
"""

import torch
import torch.distributed as dist

dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
torch.manual_seed(0)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[0])
optimizer = torch.optim.AdamW(net.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
for _ in range(20):
    with torch.autocast("cuda", torch.float16):
        loss = net(torch.randn(32, 64, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()

total = torch.ones(1 << 20, device="cuda")
beside = torch.cuda.Stream()
with torch.cuda.stream(beside):
    for _ in range(3):
        dist.all_reduce(total)
torch.cuda.current_stream().wait_stream(beside)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    dist.all_reduce(total)
    doubled = total * 2
graph.replay()
torch.cuda.synchronize()
print(f"loss {loss.item():.5f}, sum {doubled.sum().item():.0f}")
dist.destroy_process_group()
