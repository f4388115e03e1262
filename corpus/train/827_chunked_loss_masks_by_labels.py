# source: unslothai/unsloth PR#4059 (issue 4041)
# mechanism: [custom autograd Function] fused cross entropy masks its losses with the labels; with a balanced device map the logits come from the last GPU, the labels are where the trainer put the batch
# phase: loss (forward of the Function); failing op: aten::masked_fill_ (cuda:1 losses, cuda:0 mask)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        n, v = logits.shape
        lse = torch.cat([c.logsumexp(-1) for c in logits.chunk(2)])
        losses = lse.clone()
        losses.masked_fill_(labels == -100, 0)  # RAISE  # ALSO
        safe = labels.clamp(min=0)
        losses -= logits.gather(1, safe[:, None]).squeeze(1).masked_fill(labels == -100, 0)
        ctx.save_for_backward(logits, lse, labels)
        return losses

    @staticmethod
    def backward(ctx, g):
        logits, lse, labels = ctx.saved_tensors
        grad = (logits - lse[:, None]).exp() - F.one_hot(labels.clamp(min=0), logits.shape[1])
        return grad * (g * (labels != -100))[:, None], None

def prepare(batch):
    return {k: v.to(dev) for k, v in batch.items()}  # ROOT

embed, head = nn.Embedding(9, 4).to(dev), nn.Linear(4, 9).to(d1)
batch = prepare({"ids": torch.randint(0, 9, (6,)), "labels": torch.tensor([-100, 1, 2, 3, -100, 5])})
logits = head(embed(batch["ids"]).to(d1))
loss = ChunkedCrossEntropy.apply(logits, batch["labels"]).mean()  # ALSO
loss.backward()
