# source: huggingface/transformers PR#31008
# mechanism: the 4-dimensional mask is made on the device of the embeddings and combined with the padding mask, which the caller left on the device of the inputs.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class PrefixLM(nn.Module):
    def __init__(self, vocab=36, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocab, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, inputs_embeds, mask):
        b, s, d = inputs_embeds.shape
        q, k, v = self.qkv(inputs_embeds).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.head(inputs_embeds + self.out(y.transpose(1, 2).reshape(b, s, d)))


class Projector(nn.Module):
    def __init__(self, vision_dim, dim):
        super().__init__()
        self.linear = nn.Linear(vision_dim, dim)

    def forward(self, features):
        return self.linear(features.to(self.linear.weight.device))


class VisionPrefixModel(nn.Module):
    def __init__(self, vision_dim=10):
        super().__init__()
        self.projector = Projector(vision_dim, 16)
        self.language_model = PrefixLM()

    def merge(self, image, input_ids, attention_mask):
        text = self.language_model.embed(input_ids.to(self.language_model.embed.weight.device))
        embeds = torch.cat([image.to(text.device), text], dim=1)
        prefix = image.shape[1]
        length = embeds.shape[1]
        low = torch.finfo(embeds.dtype).min
        causal = torch.full((length, length), low, dtype=embeds.dtype, device=embeds.device).triu(1)
        causal[:, :prefix] = 0
        causal = causal[None, None].expand(len(embeds), 1, -1, -1).clone()
        if attention_mask is not None:
            full = F.pad(attention_mask, (prefix, 0), value=1)  # ALSO
            blocked = (causal == 0) & (full[:, None, None, :] == 0)  # RAISE # ROOT
            causal = causal.masked_fill(blocked, low)
        return embeds, causal

    def forward(self, pixel_features, input_ids, attention_mask=None):
        image = self.projector(pixel_features)
        embeds, mask = self.merge(image, input_ids, attention_mask)
        return self.language_model(embeds, mask)[:, image.shape[1] :]


class Processor:
    pad = 0

    def __call__(self, prompts, features):
        width = max(map(len, prompts))
        ids = torch.tensor([p + [self.pad] * (width - len(p)) for p in prompts])
        return {"input_ids": ids, "attention_mask": (ids != self.pad).long(), "pixel_features": features}


def main():
    torch.manual_seed(0)
    model = VisionPrefixModel().eval()
    model.projector.to("cuda:0")
    model.language_model.to("cuda:1")
    batch = Processor()([[4, 8, 15], [16, 23]], torch.randn(2, 4, 10))
    batch = {k: v.to("cuda:0") for k, v in batch.items()}
    with torch.no_grad():
        logits = model(**batch)
    print(logits.shape, logits.argmax(-1).cpu().tolist())


if __name__ == "__main__":
    main()
