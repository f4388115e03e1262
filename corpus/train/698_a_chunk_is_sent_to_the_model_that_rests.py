# source: modelscope/ms-swift PR#9844
# mechanism: [sharding with parameter offload] sharded parameters rest on the CPU between forwards, so model.device reports cpu; the collated chunk is sent there, while the forward hooks gather the weights on the accelerator
# phase: GRPO log-prob computation; failing op: aten::embedding (index)
# expect: raises
from types import SimpleNamespace

import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ShardedLM(nn.Module):
    def __init__(self, vocab=24, dim=8):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(vocab, dim), nn.LayerNorm(dim), nn.Linear(dim, vocab)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, input_ids, attention_mask):
        h = self.embed(input_ids)  # RAISE
        return self.head(self.norm(h * attention_mask.unsqueeze(-1)))

def fully_shard(module, compute_device):
    module.register_forward_pre_hook(lambda m, args: m.to(compute_device) and None)
    module.register_forward_hook(lambda m, args, out: m.to("cpu") and None)

def to_device(batch, device):
    return {k: v.to(device) for k, v in batch.items()}

class GRPOTrainer:
    def __init__(self, model, accelerator):
        self.model, self.accelerator = model, accelerator

    def collate(self, samples):
        n = max(map(len, samples))
        rows = [s + [0] * (n - len(s)) for s in samples]
        ids = torch.tensor(rows)
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}

    def get_chunked_inputs(self, samples, start, end):
        return to_device(self.collate(samples[start:end]), self.model.device)  # ROOT

    def logps(self, samples, chunk=2):
        out = []
        for start in range(0, len(samples), chunk):
            inputs = self.get_chunked_inputs(samples, start, start + chunk)  # ALSO
            out.append(self.model(**inputs).log_softmax(-1).amax(-1).sum(-1))  # ALSO
        return torch.cat(out)

lm = ShardedLM()
for child in lm.children():
    fully_shard(child, dev)
with torch.no_grad():
    GRPOTrainer(lm, SimpleNamespace(device=dev)).logps([[3, 4, 5], [6, 7], [8, 9, 1, 2]])
