# source: huggingface/transformers#37886, PR#37890, unslothai/unsloth-zoo#147
# mechanism: [keyword through the layers] a trainer counts the labels of all accumulated batches on the first GPU and hands the count down by keyword; the loss is made on the last GPU, and labels are moved there but the count is not
# phase: loss (gradient accumulation); failing op: aten::div (cuda:1 0-d / cuda:0 0-d)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE = -100


def token_loss(logits, labels, item_count=None):
    labels = F.pad(labels, (0, 1), value=IGNORE)[..., 1:].to(logits.device)
    reduction = "mean" if item_count is None else "sum"
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction=reduction)
    if reduction == "sum":
        loss = loss / item_count  # ROOT # RAISE
    return loss


class TwoStageLM(nn.Module):
    def __init__(self, vocab=18, width=8):
        super().__init__()
        self.bottom = nn.Sequential(nn.Embedding(vocab, width), nn.Linear(width, width), nn.GELU()).to("cuda:0")
        self.top = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, vocab)).to("cuda:1")

    def forward(self, ids, labels=None, **loss_options):
        logits = self.top(self.bottom(ids).to("cuda:1"))
        return {"logits": logits, "loss": None if labels is None else token_loss(logits, labels, **loss_options)}


class Accumulator:
    def __init__(self, model, steps):
        self.model, self.steps = model, steps
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def take(self, batches):
        group = [next(batches) for _ in range(self.steps)]
        return group, sum(b["labels"].ne(IGNORE).sum() for b in group)  # ALSO

    def update(self, batches):
        group, count = self.take(batches)
        for batch in group:
            self.model(**batch, item_count=count)["loss"].backward()  # ALSO
        self.opt.step()
        self.opt.zero_grad()


def stream():
    while True:
        ids = torch.randint(0, 18, (2, 7), device="cuda:0")
        labels = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < 0.2, IGNORE)
        yield {"ids": ids, "labels": labels}


model = TwoStageLM()
probe = next(stream())
print(float(model(**probe)["loss"].detach()))
Accumulator(model, 4).update(stream())
