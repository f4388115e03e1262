# source: sgl-project/sglang PR#13623
# mechanism: [factory call without device=] dummy batch for graph capture is built inside `with torch.device(...)`, so the copy of the lengths that is meant for the host comes to lie on the GPU as well
# phase: graph capture (warm-up); failing op: aten::sub (cuda lengths, cpu prefix lengths)
# expect: raises
import torch
from dataclasses import dataclass

dev = torch.device("cuda", 0)


@dataclass
class ForwardBatch:
    input_ids: torch.Tensor
    seq_lens: torch.Tensor
    seq_lens_cpu: torch.Tensor


class Planner:
    def __init__(self, page):
        self.page = page
        self.prefix_lens = torch.zeros(64, dtype=torch.int64)

    def plan(self, batch):
        fresh = batch.seq_lens_cpu - self.prefix_lens[: len(batch.seq_lens_cpu)]  # RAISE
        return [-(-n // self.page) for n in fresh.tolist()]


class GraphRunner:
    def __init__(self, device):
        self.device, self.planner = device, Planner(4)

    def dummy_batch(self, num_tokens):
        with torch.device(self.device):
            return ForwardBatch(
                input_ids=torch.zeros(num_tokens, dtype=torch.int64),
                seq_lens=torch.tensor([num_tokens]),
                seq_lens_cpu=torch.tensor([num_tokens]),  # ROOT
            )

    def capture(self, sizes):
        for n in sizes:
            self.planner.plan(self.dummy_batch(n))


GraphRunner(dev).capture([4, 8])
