# source: huggingface/transformers#9200
# mechanism: with a model over two GPUs the past of each layer lies on the GPU of this layer, while the chosen beams that must reorder it come from the logits.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class CachedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return x + self.proj(y), (k, v)


class GPT2Like(nn.Module):
    def __init__(self, vocab=22, dim=16, layers=4):
        super().__init__()
        self.vocab = vocab
        self.wte = nn.Embedding(vocab, dim)
        self.h = nn.ModuleList(CachedBlock(dim) for _ in range(layers))
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.device_map = None

    def parallelize(self, device_map):
        self.device_map = device_map
        first = next(iter(device_map))
        self.wte.to(first)
        self.lm_head.to(first)
        for device, indices in device_map.items():
            for index in indices:
                self.h[index].to(device)
        return self

    def forward(self, input_ids, past=None):
        x = self.wte(input_ids)
        presents = []
        for index, block in enumerate(self.h):
            x = x.to(block.proj.weight.device)
            x, present = block(x, None if past is None else past[index])
            presents.append(present)
        return self.lm_head(x.to(self.lm_head.weight.device)), tuple(presents)

    @staticmethod
    def reorder_past(past, beam_idx):
        return tuple(tuple(state.index_select(0, beam_idx) for state in layer) for layer in past)  # RAISE # ROOT


class BeamScorer:
    def __init__(self, batch, beams, device):
        self.batch, self.beams = batch, beams
        self.scores = torch.full((batch, beams), -1e9, device=device)
        self.scores[:, 0] = 0
        self.offset = torch.arange(batch, device=device)[:, None] * beams

    def process(self, logprobs):
        vocab = logprobs.shape[-1]
        total = logprobs.view(self.batch, self.beams, vocab) + self.scores[..., None]
        self.scores, flat = total.view(self.batch, -1).topk(self.beams, dim=1)
        return (flat // vocab + self.offset).view(-1), (flat % vocab).view(-1, 1)


@torch.no_grad()
def generate(model, input_ids, num_beams, steps):
    scorer = BeamScorer(len(input_ids), num_beams, input_ids.device)
    ids = input_ids.repeat_interleave(num_beams, dim=0)
    logits, past = model(ids)
    for step in range(steps):
        beam_idx, tokens = scorer.process(logits[:, -1].log_softmax(-1))
        ids = torch.cat([ids.index_select(0, beam_idx), tokens], dim=1)
        if step + 1 < steps:
            past = model.reorder_past(past, beam_idx)
            logits, past = model(tokens, past)
    return ids.view(len(input_ids), num_beams, -1)[:, 0]


def main():
    torch.manual_seed(0)
    model = GPT2Like().parallelize({"cuda:0": [0, 1], "cuda:1": [2, 3]}).eval()
    prompt = torch.tensor([[5, 3, 9], [2, 2, 14]], device="cuda:0")
    print(generate(model, prompt, num_beams=3, steps=4).cpu().tolist())


if __name__ == "__main__":
    main()
