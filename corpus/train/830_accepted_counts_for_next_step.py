# source: vllm-project/vllm PR#36013
# mechanism: [async copy race] counts are copied with non_blocking into a pinned host buffer at the end of one step and read from it while the metadata of the next step is built; nothing waits in between
# phase: decoding (asynchronous scheduling); failing op: Tensor.copy_(non_blocking=True) into pinned memory, read by the host a step later
# expect: silent
# kinds: async-race
import torch

dev = torch.device("cuda", 0)


class Runner:
    def __init__(self, slots):
        self.accepted = torch.ones(slots, dtype=torch.int64, device=dev)
        self.accepted_host = torch.ones(slots, dtype=torch.int64, pin_memory=torch.cuda.is_available())
        self.state = torch.zeros(slots, 8, device=dev)

    def build_metadata(self, n):
        counts = self.accepted_host[:n].tolist()  # RAISE
        return [c - 1 for c in counts]

    def execute(self, n):
        offsets = self.build_metadata(n)
        drafts = torch.randint(0, 4, (n, 3), device=dev)
        target = (self.state[:n, :3] + drafts).long().roll(1, 0)
        hits = (drafts == target).long().cumprod(1).sum(1) + 1
        self.after_execute(hits, n)
        return offsets

    def after_execute(self, hits, n):
        self.accepted[:n] = hits
        self.accepted_host[:n].copy_(self.accepted[:n], non_blocking=True)  # ROOT

runner = Runner(4)
for n in (4, 4, 3):
    runner.execute(n)
