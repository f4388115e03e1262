"""Collectives of NCCL by each way that there is to them, one after the other, and then time for all of them to end.

To be started by torchrun with one process. scripts/gpu_check_collectives.py holds what is recorded against its order.
"""

import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
group = dist.new_group([0])
values = torch.ones(1024, device="cuda")
more = torch.empty_like(values)

dist.all_reduce(values)
dist.broadcast(values, src=0, async_op=True).wait()
dist.all_gather_into_tensor(more, values)
dist.reduce_scatter_tensor(more, values)
dist.all_gather([more], values)
dist.all_to_all_single(more, values)
dist.reduce(values, dst=0)
dist.all_reduce(values.half(), group=group)
torch.cuda._sleep(400_000_000)  # some 200 ms, in which the host goes on
dist.all_reduce(values)
total = functional.all_reduce(values, "sum", dist.group.WORLD)
dist.barrier()
loss = (total + values + more).sum().item()

# PyTorch's watchdog looks every 100 ms.
torch.cuda.synchronize()
time.sleep(1)
print(f"sum {loss:.0f}")
dist.destroy_process_group()
