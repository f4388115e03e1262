# source: huggingface/transformers PR#35395 (after #34191)
# mechanism: [model parallel, loss] the logits come from the last stage's GPU, the labels went to the first stage's with the batch; a loss function taken from a shared registry lost the move that the models used to make
# phase: loss; failing op: aten::nll_loss_forward (cuda:1 x cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F


def stable_cross_entropy(scores, target, items=None):
    reduction = "mean" if items is None else "sum"
    loss = F.cross_entropy(scores.float(), target, reduction=reduction)  # RAISE  # ALSO
    return loss if items is None else loss / items


def topic_loss(scores, labels, classes, **extra):
    flat = labels.reshape(-1)  # ROOT
    return stable_cross_entropy(scores.reshape(-1, classes), flat, **extra)  # ALSO


def rating_loss(scores, labels, classes, **extra):
    return F.mse_loss(scores.squeeze(-1), labels.to(scores.device).float())


LOSSES = {"topic": topic_loss, "rating": rating_loss}


class LetterSorter(nn.Module):
    task, classes = "topic", 3

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Embedding(20, 8).to("cuda:0"), nn.Linear(8, 8).to("cuda:1")])
        self.head = nn.Linear(8, self.classes).to("cuda:1")

    def forward(self, tokens, labels=None):
        state = tokens
        for stage in self.stages:
            state = stage(state.to(stage.weight.device))
        scores = self.head(state.mean(dim=1))
        loss = None if labels is None else LOSSES[self.task](scores, labels, self.classes)  # ALSO
        return {"scores": scores, "loss": loss}


model = LetterSorter()
entry = next(model.parameters()).device
batch = {"tokens": torch.randint(0, 20, (4, 7)), "labels": torch.tensor([0, 2, 1, 1])}
batch = {key: value.to(entry) for key, value in batch.items()}
model(**batch)["loss"].backward()
