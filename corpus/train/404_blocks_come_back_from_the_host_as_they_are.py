# source: vllm-project/vllm#5181
# mechanism: old blocks of a cache rest on the host; who makes them resident again only moves the entry
# phase: forward; aten::cat
# expect: raises
import torch


class Blocks:
    def __init__(self, limit, device):
        self.near, self.far = {}, {}
        self.limit, self.device = limit, device

    def add(self, number, block):
        self.near[number] = block
        while len(self.near) > self.limit:
            oldest = min(self.near)
            self.far[oldest] = self.near.pop(oldest).cpu()

    def restore(self, number):
        self.near[number] = self.far.pop(number)  # ROOT

    def gather(self, count):
        blocks = []
        for number in range(count):
            if number in self.far:
                self.restore(number)
            blocks.append(self.near[number])
        return torch.cat(blocks)  # RAISE


cache = Blocks(2, "cuda")
for number in range(4):
    cache.add(number, torch.rand(2, 3, device="cuda"))
print(cache.gather(4).sum())
