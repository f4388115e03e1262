# source: huggingface/transformers PR#41572
# mechanism: the bidirectional groups of image tokens are masked on the device of the cache positions, but the filler of torch.where is a full_like of the token types, which lie on another GPU.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


def image_groups(token_type_ids, cache_position):
    is_image = (token_type_ids == 1).to(cache_position.device)  # ALSO
    before = F.pad(is_image, (1, 0), value=False)[:, :-1]
    starts = is_image & ~before
    group_ids = starts.int().cumsum(dim=1) - 1
    return torch.where(is_image, group_ids, torch.full_like(token_type_ids, -1, dtype=torch.int32))  # RAISE # ROOT


def build_mask(token_type_ids, cache_position):
    causal = cache_position[:, None] >= cache_position[None, :]
    groups = image_groups(token_type_ids, cache_position)  # ALSO
    same = (groups[:, :, None] == groups[:, None, :]) & (groups[:, :, None] >= 0)
    return causal[None, None] | same[:, None]


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.out(y.transpose(1, 2).reshape(b, s, d))


class MixedModel(nn.Module):
    def __init__(self, vocab=30, dim=16, heads=2, layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Attention(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab)

    def place(self, embed_device, body_device):
        self.embed_tokens.to(embed_device)
        for module in (self.layers, self.norm, self.lm_head):
            module.to(body_device)
        return self

    def forward(self, input_ids, token_type_ids=None):
        x = self.embed_tokens(input_ids)
        x = x.to(self.norm.weight.device)
        cache_position = torch.arange(x.shape[1], device=x.device)
        if token_type_ids is None:
            mask = (cache_position[:, None] >= cache_position[None, :])[None, None]
        else:
            mask = build_mask(token_type_ids, cache_position)  # ALSO
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


def processor(segments):
    ids, types = [], []
    for kind, tokens in segments:
        ids += tokens
        types += [int(kind == "image")] * len(tokens)
    return {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}


def main():
    torch.manual_seed(0)
    model = MixedModel().place("cuda:0", "cuda:1").eval()
    batch = processor([("text", [2, 3]), ("image", [7, 7, 7]), ("text", [4]), ("image", [7, 7])])
    batch = {k: v.to("cuda:0") for k, v in batch.items()}
    with torch.no_grad():
        plain = model(batch["input_ids"])
        grouped = model(**batch)
    print((plain - grouped).abs().max().item())


if __name__ == "__main__":
    main()
