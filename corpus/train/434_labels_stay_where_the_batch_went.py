# source: huggingface/transformers#22561
# mechanism: the layers of a model lie on two GPUs; its logits come from the second, the labels are still on the first
# phase: forward; aten::cross_entropy_loss
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
from torch.nn import functional as F


class Split(nn.Module):
    def __init__(self, words=16, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width).to("cuda:0")
        self.inner = nn.Linear(width, width).to("cuda:0")
        self.head = nn.Linear(width, words).to("cuda:1")

    def forward(self, ids, labels=None):
        hidden = torch.tanh(self.inner(self.embed(ids)))
        logits = self.head(hidden.to("cuda:1"))
        if labels is None:
            return logits
        scores = logits[:, :-1].flatten(0, 1)
        wanted = labels[:, 1:].flatten()  # ROOT
        return F.cross_entropy(scores, wanted)  # RAISE  # ALSO


model = Split()
batch = {name: torch.randint(0, 16, (2, 6)).to("cuda:0") for name in ("ids", "labels")}
print(model(batch["ids"]).shape)
model(**batch).backward()
