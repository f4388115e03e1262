# source: RUCAIBox/RecBole#556
# mechanism: masked positions become rows of a multi-hot matrix that is made without the model's device
# expect: raises
import random

import torch
import torch.nn.functional as F
from torch import nn


class SequentialRecommender(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.device = torch.device(config["device"])
        self.n_items = config["n_items"]
        self.max_len = config["max_len"]

    def loss_device(self):
        return self.device


class BERT4Rec(SequentialRecommender):
    def __init__(self, config):
        super().__init__(config)
        dim = config["hidden_size"]
        self.mask_ratio = config["mask_ratio"]
        self.mask_token = self.n_items
        self.mask_length = max(1, int(self.mask_ratio * self.max_len))
        self.item_embedding = nn.Embedding(self.n_items + 1, dim, padding_idx=0)
        self.position_embedding = nn.Embedding(self.max_len, dim)
        self.encoder = nn.TransformerEncoderLayer(dim, 2, 2 * dim, batch_first=True)

    def reconstruct(self, item_seq):
        masked, targets, index = [], [], []
        for row in item_seq.cpu().tolist():
            spots = [i for i, item in enumerate(row) if item != 0]
            spots = sorted(random.sample(spots, min(self.mask_length, len(spots))))
            targets.append(self.pad([row[i] for i in spots]))
            index.append(self.pad(spots))
            masked.append([self.mask_token if i in spots else v for i, v in enumerate(row)])
        make = lambda rows: torch.tensor(rows, dtype=torch.long, device=self.device)
        return make(masked), make(targets), make(index)

    def pad(self, values):
        return values + [0] * (self.mask_length - len(values))

    def forward(self, item_seq):
        position = torch.arange(item_seq.shape[1], device=item_seq.device)
        x = self.item_embedding(item_seq) + self.position_embedding(position)
        return self.encoder(x, src_key_padding_mask=item_seq == 0)

    def multi_hot(self, index, length):
        flat = index.view(-1)
        rows = torch.zeros(flat.shape[0], length)  # ROOT
        order = torch.arange(flat.shape[0], device=flat.device)
        rows[order, flat] = 1
        return rows.view(index.shape[0], -1, length)  # ALSO

    def calculate_loss(self, interaction):
        masked, targets, index = self.reconstruct(interaction["item_seq"])
        hidden = self(masked)
        picked = torch.bmm(self.multi_hot(index, hidden.shape[1]), hidden)  # RAISE # ALSO
        logits = picked @ self.item_embedding.weight[: self.n_items].T
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        real = (targets > 0).float().flatten()
        return (loss * real).sum() / real.sum()


def fit(model, interactions, epochs=1):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for interaction in interactions:
            interaction = {k: v.to(model.device) for k, v in interaction.items()}
            loss = model.calculate_loss(interaction)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = dict(device=device, n_items=20, max_len=6, hidden_size=8, mask_ratio=0.4)
    data = [{"item_seq": torch.randint(1, 20, (4, 6))} for _ in range(2)]
    print(fit(BERT4Rec(config).to(config["device"]), data))
