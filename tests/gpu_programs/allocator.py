"""Makes PyTorch's caching allocator take memory from the driver and give it back, and prints what it counted."""

import json

import torch

kept = []
for number in range(200):
    kept.append(torch.empty((number % 50 + 1) << 20, dtype=torch.uint8, device="cuda"))
    if number % 3 == 0:
        kept.pop(0)
    if number % 60 == 59:
        torch.cuda.empty_cache()
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
print(json.dumps({"backend": torch.cuda.memory.get_allocator_backend(),
                  "allocations": stats.get("num_device_alloc", 0), "frees": stats.get("num_device_free", 0),
                  "reserved": stats.get("reserved_bytes.all.peak", 0),
                  "allocated": stats.get("allocated_bytes.all.peak", 0)}))
