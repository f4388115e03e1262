# source: huggingface/transformers#29880
# mechanism: the vision projection is mapped to another GPU than the word embeddings, and its patch features are written into the word embeddings without a move
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

DEVICE_MAP = {
    "vision_embed_tokens": "cuda:1",
    "language_model.embed_tokens": "cuda:0",
    "language_model.layers.0": "cuda:0",
    "language_model.layers.1": "cuda:1",
    "language_model.lm_head": "cuda:1",
}


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2))
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, inputs_embeds):
        hidden = inputs_embeds
        for layer in self.layers:
            hidden = hidden.to(layer.weight.device)
            hidden = hidden + torch.tanh(layer(hidden))
        return self.lm_head(hidden.to(self.lm_head.weight.device))


class PatchForCausalLM(nn.Module):
    def __init__(self, vocab=40, dim=12, patch=4, channels=3):
        super().__init__()
        self.patch, self.channels = patch, channels
        self.vision_embed_tokens = nn.Linear(patch * patch * channels, dim)
        self.language_model = LanguageModel(vocab, dim)

    def patchify(self, image):
        blocks = image.unfold(1, self.patch, self.patch).unfold(2, self.patch, self.patch)
        return blocks.permute(1, 2, 0, 3, 4).reshape(-1, self.channels * self.patch**2)

    def gather_continuous_embeddings(self, word_embeddings, patch_embeddings, patch_indices):
        output = word_embeddings.clone()
        for row, embeddings in enumerate(patch_embeddings):
            target = (patch_indices[row] >= 0).nonzero(as_tuple=True)[0]
            source = patch_indices[row][target]
            output[row] = output[row].index_copy(0, target, embeddings[source.to(embeddings.device)])  # RAISE # ALSO
        return output

    def forward(self, input_ids, image_patches=None, image_patches_indices=None):
        inputs_embeds = self.language_model.embed_tokens(input_ids)
        if image_patches is not None:
            device = self.vision_embed_tokens.weight.device
            patch_embeddings = [self.vision_embed_tokens(p.to(device)) for p in image_patches]  # ROOT
            inputs_embeds = self.gather_continuous_embeddings(
                inputs_embeds, patch_embeddings, image_patches_indices.to(inputs_embeds.device)
            )
        return self.language_model(inputs_embeds)


def dispatch(model, device_map):
    for path, device in device_map.items():
        model.get_submodule(path).to(device)
    return model


def encode(texts, num_patches):
    ids, indices = [], []
    for text in texts:
        words = [ord(c) % 40 for c in text]
        ids.append([0] * num_patches + words)
        indices.append(list(range(num_patches)) + [-1] * len(words))
    return torch.tensor(ids), torch.tensor(indices)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    model = dispatch(PatchForCausalLM(), DEVICE_MAP).eval()
    text_only, _ = encode(["caption", "what is"], 0)
    print(model(text_only.to("cuda:0")).shape)
    images = [torch.rand(3, 8, 8) for _ in range(2)]
    patches = [model.patchify(image) for image in images]
    input_ids, indices = encode(["caption", "what is"], patches[0].size(0))
    logits = model(input_ids.to("cuda:0"), patches, indices)
    print(logits[:, -1].argmax(-1).tolist())


if __name__ == "__main__":
    main()
