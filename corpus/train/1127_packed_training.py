# source: InternLM/xtuner PR#1365
# mechanism: the attention kernel wants the sequence lengths on the CPU; the weights of the loss are derived from them, inherit the CPU, and multiply the token losses of the GPU.
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class SequenceContext:
    input_ids: torch.Tensor
    cu_seq_lens: torch.Tensor

    @classmethod
    def pack(cls, samples, device):
        ids = torch.cat(samples).to(device)
        lengths = torch.tensor([0] + [len(s) for s in samples])
        return cls(ids[None], lengths.cumsum(0))


class PackedLM(nn.Module):
    def __init__(self, vocab=30, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, context):
        x = self.embed(context.input_ids)
        bounds = context.cu_seq_lens.tolist()
        parts = [self.mix(x[:, a:b])[0] for a, b in zip(bounds[:-1], bounds[1:])]
        return self.head(torch.cat(parts, dim=1))


@dataclass
class CELossConfig:
    loss_reduction: str = "token"
    ignore_index: int = -100


def count_grad_tokens(labels, boundaries, ignore_index):
    valid = (labels[0] != ignore_index).long().cpu()
    totals = F.pad(valid.cumsum(0), (1, 0))
    return totals[boundaries[1:]] - totals[boundaries[:-1]]


def build_loss_weight(config, labels, context):
    mask = labels != config.ignore_index
    if config.loss_reduction == "token":
        return mask.float() / mask.sum()
    boundaries = context.cu_seq_lens
    num_grad_tokens = count_grad_tokens(labels, boundaries, config.ignore_index)
    per_sample = 1.0 / num_grad_tokens.clamp_min(1).float()
    if config.loss_reduction == "square":
        per_sample = per_sample.sqrt()
    loss_weight = per_sample.repeat_interleave(boundaries.diff())[None]  # ROOT
    return loss_weight / loss_weight.sum()  # ALSO


def shift_labels(context, ignore_index):
    labels = torch.roll(context.input_ids, -1, dims=1).clone()
    labels[:, context.cu_seq_lens[1:] - 1] = ignore_index
    return labels


def ce_loss(logits, labels, weight, ignore_index):
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignore_index, reduction="none")
    return (loss * weight.flatten()).sum()  # RAISE # ALSO


def train(config, steps, device):
    model = PackedLM().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        samples = [torch.randint(0, 30, (n,)) for n in (5, 3, 7)]
        context = SequenceContext.pack(samples, device)
        labels = shift_labels(context, config.ignore_index)
        weight = build_loss_weight(config, labels, context)  # ALSO
        loss = ce_loss(model(context), labels, weight, config.ignore_index)  # ALSO
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    print("token", train(CELossConfig("token"), 2, device))
    print("square", train(CELossConfig("square"), 2, device))


if __name__ == "__main__":
    main()
