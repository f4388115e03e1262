# source: huggingface/transformers PR#33871
# mechanism: a checkpoint is assigned into the text encoder straight on the GPU; the position ids are a buffer that is not saved, so it stays where the constructor made it.
# expect: raises
import os
import tempfile

import torch
from torch import nn


class TextEmbeddings(nn.Module):
    def __init__(self, vocab, dim, max_positions):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, dim)
        self.position_embedding = nn.Embedding(max_positions, dim)
        ids = torch.arange(max_positions).expand((1, -1))
        self.register_buffer("position_ids", ids, persistent=False)

    def forward(self, input_ids, position_ids=None):
        if position_ids is None:
            position_ids = self.position_ids[:, : input_ids.shape[1]]  # ALSO
        positions = self.position_embedding(position_ids)  # RAISE # ROOT
        return self.token_embedding(input_ids) + positions


class TextEncoder(nn.Module):
    def __init__(self, vocab=49, dim=16, max_positions=12):
        super().__init__()
        self.embeddings = TextEmbeddings(vocab, dim, max_positions)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.final_norm = nn.LayerNorm(dim)
        self.projection = nn.Linear(dim, 8, bias=False)

    def forward(self, input_ids):
        length = input_ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=input_ids.device)
        hidden = self.layer(self.embeddings(input_ids), src_mask=mask)
        pooled = self.final_norm(hidden)[torch.arange(len(input_ids), device=input_ids.device), input_ids.argmax(-1)]
        return self.projection(pooled)


def save_checkpoint(folder):
    model = TextEncoder()
    path = os.path.join(folder, "text_encoder.pt")
    torch.save({"config": {"vocab": 49, "dim": 16}, "weights": model.state_dict()}, path)
    return path


def load_text_encoder(path, device):
    checkpoint = torch.load(path, map_location=device)
    model = TextEncoder(**checkpoint["config"])  # ALSO
    model.load_state_dict(checkpoint["weights"], assign=True)
    model.requires_grad_(False)  # ALSO
    return model.eval()  # ALSO


class PromptEncoder:
    end_token = 48

    def __init__(self, model, device, length=8):
        self.model, self.device, self.length = model, device, length  # ALSO

    def tokenize(self, prompt):
        ids = [1 + sum(map(ord, w)) % 40 for w in prompt.split()][: self.length - 1] + [self.end_token]
        return ids + [0] * (self.length - len(ids))

    @torch.no_grad()
    def encode(self, prompts):
        ids = torch.tensor([self.tokenize(p) for p in prompts], device=self.device)
        features = self.model(ids)
        return features / features.norm(dim=-1, keepdim=True)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    with tempfile.TemporaryDirectory() as folder:
        model = load_text_encoder(save_checkpoint(folder), device)
    encoder = PromptEncoder(model, device)
    features = encoder.encode(["a photo of a cat", "a drawing of two dogs"])
    print((features @ features.t()).cpu())


if __name__ == "__main__":
    main()
