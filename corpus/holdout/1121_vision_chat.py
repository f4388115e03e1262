# source: huggingface/transformers PR#33851
# mechanism: the mask of image tokens comes from the input ids on one GPU and is scattered into text embeddings that the device map puts on another.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn

IMAGE_TOKEN = 7


class PatchTower(nn.Module):
    def __init__(self, patch, dim):
        super().__init__()
        self.patch_embed = nn.Linear(patch, dim)
        self.merger = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim))

    def forward(self, pixel_values):
        return self.merger(self.patch_embed(pixel_values.to(self.patch_embed.weight.device)))


class TextModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layer = nn.GRU(dim, dim, batch_first=True)

    def embed(self, input_ids):
        return self.embed_tokens(input_ids.to(self.embed_tokens.weight.device))

    def forward(self, inputs_embeds):
        return self.layer(inputs_embeds)[0]


class VisionChat(nn.Module):
    def __init__(self, vocab=32, dim=12, patch=6):
        super().__init__()
        self.visual = PatchTower(patch, dim)
        self.model = TextModel(vocab, dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def dispatch(self, device_map):
        for name, device in device_map.items():
            self.get_submodule(name).to(device)
        return self

    def merge_images(self, input_ids, inputs_embeds, image_embeds):
        n_tokens = int((input_ids == IMAGE_TOKEN).sum())
        if n_tokens != image_embeds.shape[0]:
            raise ValueError(f"{n_tokens} image tokens, {image_embeds.shape[0]} image features")
        places = input_ids.eq(IMAGE_TOKEN)[..., None].expand(-1, -1, inputs_embeds.shape[-1])  # ROOT
        image_embeds = image_embeds.to(inputs_embeds.device, inputs_embeds.dtype)
        return inputs_embeds.masked_scatter(places, image_embeds)  # RAISE # ALSO

    def forward(self, input_ids, pixel_values=None):
        inputs_embeds = self.model.embed(input_ids)
        if pixel_values is not None:
            image_embeds = self.visual(pixel_values)
            inputs_embeds = self.merge_images(input_ids, inputs_embeds, image_embeds)  # ALSO
        hidden = self.model(inputs_embeds)
        return self.lm_head(hidden.to(self.lm_head.weight.device))


def process(prompt, patches):
    ids = []
    for token in prompt:
        ids.extend([IMAGE_TOKEN] * patches.shape[0] if token == "<image>" else [token])
    return {"input_ids": torch.tensor([ids]), "pixel_values": patches}


def main():
    torch.manual_seed(0)
    model = VisionChat().eval()
    model.dispatch({"visual": "cuda:0", "model": "cuda:1", "lm_head": "cuda:1"})
    inputs = process([3, 4, "<image>", 9, 2], torch.randn(4, 6))
    inputs = {k: v.to("cuda:0") for k, v in inputs.items()}
    with torch.no_grad():
        text_only = model(torch.tensor([[3, 4, 9]], device="cuda:0"))
        logits = model(**inputs)
    print(text_only.shape, logits.argmax(-1).cpu().tolist())


if __name__ == "__main__":
    main()
