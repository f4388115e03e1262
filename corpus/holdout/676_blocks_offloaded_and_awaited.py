# source: vllm-project/vllm#45704, PR#46278 (as the fix leaves it: the stream of the copies waits for the one that computes)
# mechanism: none; blocks of a cache go to pinned memory on a stream of their own that waits for their producer, the host reads them after an event, and they come back behind a wait
# phase: n/a
# expect: clean
import torch


class HostTier:
    def __init__(self, slots, shape, device):
        self.device = torch.device(device)
        self.pool = torch.empty(slots, *shape, pin_memory=True)
        self.copies = torch.cuda.Stream(self.device)
        self.done, self.sums = {}, {}

    def save(self, slot, block):
        self.copies.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.copies):
            self.pool[slot].copy_(block, non_blocking=True)
            event = torch.cuda.Event()
            event.record(self.copies)
        block.record_stream(self.copies)
        self.done[slot] = event

    def checksum(self, slot):
        self.done[slot].synchronize()
        self.sums[slot] = float(self.pool[slot].sum())
        return self.sums[slot]

    def load(self, slot, into):
        self.copies.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.copies):
            into.copy_(self.pool[slot], non_blocking=True)
        torch.cuda.current_stream(self.device).wait_stream(self.copies)
        return into


tier = HostTier(4, (2, 3, 8), "cuda:0")
cache = torch.zeros(4, 2, 3, 8, device="cuda:0")
for slot in range(4):
    cache[slot] = torch.randn(2, 3, 8, device="cuda:0") * 0.5
    tier.save(slot, cache[slot])
kept = [slot for slot in range(4) if abs(tier.checksum(slot)) >= 0]
cache.zero_()
order = torch.tensor(kept[::-1])
for slot in kept:
    tier.load(slot, cache[slot])
recalled = cache[order]
attention = torch.softmax(recalled.flatten(1) @ recalled.flatten(1).T / torch.tensor(48.0).sqrt(), -1)
print(attention.argmax(-1).tolist())
