# source: BlackSamorez/tensor_parallel#56
# mechanism: the beam indices come from the device of the logits and are used to reorder the key/value cache of every shard, also of shards on another GPU
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn

DEVICES = ("cuda:0", "cuda:1")


class AttentionShard(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim // 2)
        self.out = nn.Linear(dim // 2, dim)

    def forward(self, x, past):
        q, k, v = (t.view(len(x), -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class ShardedAttention(nn.Module):
    def __init__(self, dim, heads, devices):
        super().__init__()
        self.devices = devices
        self.shards = nn.ModuleList(AttentionShard(dim, heads // 2).to(d) for d in devices)

    def forward(self, x, past):
        total, present = 0, []
        for shard, device, cached in zip(self.shards, self.devices, past or [None] * len(self.shards)):
            y, kv = shard(x.to(device), cached)
            total = total + y.to(x.device)
            present.append(kv)
        return total, present


def reorder(past, beam_idx):
    reordered = []
    for layer in past:
        shards = []
        for keys, values in layer:
            shards.append(tuple(t.index_select(0, beam_idx) for t in (keys, values)))  # RAISE # ROOT
        reordered.append(shards)
    return reordered


class ShardedLM(nn.Module):
    def __init__(self, vocab=30, dim=16, heads=4, depth=2, devices=DEVICES):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).to(devices[0])
        self.layers = nn.ModuleList(ShardedAttention(dim, heads, devices) for _ in range(depth))
        self.head = nn.Linear(dim, vocab).to(devices[0])

    def forward(self, tokens, past=None):
        x, presents = self.embed(tokens), []
        for number, layer in enumerate(self.layers):
            y, present = layer(x, past[number] if past else None)
            x = x + y
            presents.append(present)
        return self.head(x[:, -1]), presents


class BeamSearch:
    def __init__(self, model, beams):
        self.model = model
        self.beams = beams

    @torch.no_grad()
    def run(self, prompt, steps):
        tokens = prompt.repeat(self.beams, 1)
        scores = torch.zeros(self.beams, device=tokens.device)
        logits, past = self.model(tokens)
        for _ in range(steps):
            totals = scores[:, None] + logits.log_softmax(-1)
            scores, flat = totals.flatten().topk(self.beams)
            beam_idx, following = flat // totals.shape[1], flat % totals.shape[1]
            tokens = torch.cat([tokens[beam_idx], following[:, None]], 1)
            logits, past = self.model(tokens[:, -1:], reorder(past, beam_idx))
        return tokens[0]


if __name__ == "__main__":
    torch.manual_seed(0)
    search = BeamSearch(ShardedLM().eval(), beams=3)
    print(search.run(torch.tensor([[3, 7, 1]], device=DEVICES[0]), steps=4).tolist())
