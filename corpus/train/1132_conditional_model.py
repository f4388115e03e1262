# source: huggingface/transformers PR#45826
# mechanism: before the per-layer inputs are projected, the embeddings at multimodal places are replaced by that of the pad token; the mask is where the ids are, the embeddings are on another GPU.
# needs: 2 GPUs
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TextConfig:
    vocab: int = 32
    dim: int = 16
    per_layer_dim: int = 4
    layers: int = 2
    pad_token_id: int = 0
    image_token_id: int = 30


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(config.dim, config.dim), nn.GELU())
        self.gate = nn.Linear(config.dim, config.per_layer_dim)
        self.back = nn.Linear(config.per_layer_dim, config.dim)

    def forward(self, x, per_layer):
        x = x + self.mlp(x)
        return x + self.back(torch.sigmoid(self.gate(x)) * per_layer.to(x.device))


class TextModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab, config.dim)
        self.embed_per_layer = nn.Embedding(config.vocab, config.layers * config.per_layer_dim)
        self.project = nn.Linear(config.dim, config.layers * config.per_layer_dim)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))

    def embed(self, input_ids):
        return self.embed_tokens(input_ids.to(self.embed_tokens.weight.device))

    def per_layer_inputs(self, input_ids, text_embeds):
        looked_up = self.embed_per_layer(input_ids.to(self.embed_per_layer.weight.device))
        projected = self.project(text_embeds.to(self.project.weight.device))
        total = (looked_up.to(projected.device) + projected) * 0.5
        return total.view(*input_ids.shape, self.config.layers, -1)

    def forward(self, inputs_embeds, per_layer):
        x = inputs_embeds
        for index, layer in enumerate(self.layers):
            x = layer(x.to(layer.gate.weight.device), per_layer[:, :, index])
        return x


class ConditionalModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.language_model = TextModel(config)
        self.vision = nn.Linear(6, config.dim)

    def forward(self, input_ids, pixel_values):
        mask = input_ids == self.config.image_token_id  # ALSO
        text_ids = input_ids.clone()
        text_ids[mask] = self.config.pad_token_id
        inputs_embeds = self.language_model.embed(text_ids)
        pad = self.language_model.embed_tokens.weight[self.config.pad_token_id]
        text_embeds = torch.where(mask[..., None], pad, inputs_embeds)  # RAISE # ROOT
        per_layer = self.language_model.per_layer_inputs(text_ids, text_embeds)
        features = self.vision(pixel_values.to(self.vision.weight.device)).to(inputs_embeds.device)
        places = mask.to(inputs_embeds.device)[..., None].expand_as(inputs_embeds)
        inputs_embeds = inputs_embeds.masked_scatter(places, features)
        return self.language_model(inputs_embeds, per_layer)


def auto_dispatch(model, devices):
    text = model.language_model
    model.vision.to(devices[0])
    for module in (text.embed_tokens, text.embed_per_layer, text.project):
        module.to(devices[1])
    for index, layer in enumerate(text.layers):
        layer.to(devices[index % len(devices)])
    return model


def main():
    torch.manual_seed(0)
    config = TextConfig()
    model = auto_dispatch(ConditionalModel(config), ["cuda:0", "cuda:1"]).eval()
    ids = torch.tensor([[3, 30, 30, 8, 12]], device="cuda:0")
    with torch.no_grad():
        print(model(ids, torch.randn(2, 6, device="cuda:0")).shape)


if __name__ == "__main__":
    main()
