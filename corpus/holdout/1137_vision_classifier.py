# source: huggingface/transformers PR#35100
# mechanism: the image features come from the GPU of the connector, get the dtype of the text embeddings but not their device, and are written into them with a boolean mask.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn


class VisionTransformer(nn.Module):
    def __init__(self, patch, dim):
        super().__init__()
        self.patch = nn.Linear(patch, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout=0.0, batch_first=True)

    def forward(self, pixels):
        return self.layer(self.patch(pixels.to(self.patch.weight.device)))


class Connector(nn.Module):
    def __init__(self, dim, out, shuffle=2):
        super().__init__()
        self.shuffle = shuffle
        self.proj = nn.Linear(dim * shuffle, out)

    def forward(self, states):
        b, s, d = states.shape
        return self.proj(states.reshape(b, s // self.shuffle, d * self.shuffle))


class IdeficsModel(nn.Module):
    image_token_id = 9

    def __init__(self, vocab=40, dim=16, patch=6):
        super().__init__()
        self.vision_model = VisionTransformer(patch, dim)
        self.connector = Connector(dim, dim)
        self.embed = nn.Embedding(vocab, dim)
        self.text_model = nn.GRU(dim, dim, batch_first=True)

    def inputs_merger(self, input_ids, inputs_embeds, image_states):
        mask = (input_ids == self.image_token_id).to(inputs_embeds.device)
        new_embeds = inputs_embeds.clone()
        flat = image_states.reshape(-1, image_states.shape[-1])  # ALSO
        flat = flat.to(inputs_embeds.dtype)  # ROOT
        new_embeds[mask] = flat  # RAISE # ALSO
        return new_embeds

    def forward(self, input_ids, pixel_values=None):
        inputs_embeds = self.embed(input_ids.to(self.embed.weight.device))
        if pixel_values is not None:
            image_states = self.connector(self.vision_model(pixel_values))  # ALSO
            inputs_embeds = self.inputs_merger(input_ids, inputs_embeds, image_states)  # ALSO
        return self.text_model(inputs_embeds)[0]


class Classifier(nn.Module):
    def __init__(self, labels=3):
        super().__init__()
        self.model = IdeficsModel()
        self.score = nn.Linear(16, labels)

    def apply_device_map(self, device_map):
        for name, device in device_map.items():
            self.get_submodule(name).to(device)
        return self

    def forward(self, input_ids, pixel_values, labels):
        hidden = self.model(input_ids, pixel_values)[:, -1]
        logits = self.score(hidden.to(self.score.weight.device))
        return nn.functional.cross_entropy(logits, labels.to(logits.device))


def train(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for batch in batches:
        batch = {k: v.to("cuda:0") for k, v in batch.items()}
        loss = model(**batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def batches(count):
    for _ in range(count):
        ids = torch.tensor([[3, 9, 9, 5], [4, 9, 9, 6]])
        yield {"input_ids": ids, "pixel_values": torch.randn(2, 4, 6), "labels": torch.tensor([0, 2])}


def main():
    torch.manual_seed(0)
    model = Classifier().apply_device_map({
        "model.vision_model": "cuda:1", "model.connector": "cuda:1",
        "model.embed": "cuda:0", "model.text_model": "cuda:0", "score": "cuda:0",
    })
    print(list(train(model, batches(2))))


if __name__ == "__main__":
    main()
