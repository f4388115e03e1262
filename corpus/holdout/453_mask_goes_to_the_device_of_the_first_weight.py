# source: unslothai/unsloth#10569, huggingface/peft#352
# mechanism: a model's device is that of its first parameter, a table that stays in host memory; a mask is made there
# phase: forward; aten::masked_fill
# expect: raises
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)

    def forward(self, x, hidden):
        query, key, value = self.inward(x).chunk(3, dim=-1)
        scores = query @ key.mT / x.shape[-1] ** 0.5
        scores = scores.masked_fill(hidden, -torch.inf)  # RAISE  # ALSO
        return self.outward(scores.softmax(-1) @ value)


class LanguageModel(nn.Module):
    def __init__(self, words, width=16, depth=2):
        super().__init__()
        self.table = nn.EmbeddingBag(words, width, mode="sum")
        self.layers = nn.ModuleList(Attention(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    @property
    def device(self):
        return next(self.parameters()).device  # ALSO

    def place(self, device):
        """The table is large and seldom read: it is looked up in host memory."""
        self.layers.to(device)
        self.head.to(device)
        return self

    def look_up(self, ids):
        home = self.table.weight.device
        rows = self.table(ids.reshape(-1, 1).to(home))
        return rows.view(*ids.shape, -1).to(ids.device)

    def forward(self, ids):
        length = ids.shape[1]
        hidden = torch.ones(length, length, dtype=torch.bool, device=self.device).triu(1)  # ROOT
        x = self.look_up(ids)
        for layer in self.layers:
            x = x + layer(x, hidden)  # ALSO
        return self.head(x)


model = LanguageModel(words=100)
print(model(torch.randint(100, (1, 4))).shape)
model.place("cuda")
ids = torch.randint(100, (2, 7), device="cuda")
logits = model(ids)
nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
