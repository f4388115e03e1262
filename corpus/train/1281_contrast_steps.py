# source: inseq-team/inseq#238
# mechanism: the output probabilities of a model over two GPUs are gathered with target ids that are still on the GPU of the inputs
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass

import torch
from torch import nn


class SplitLM(nn.Module):
    """Embeddings and the first block on one device, the rest on another."""

    def __init__(self, vocab, dim, device_map):
        super().__init__()
        self.device_map = device_map
        self.embed = nn.Embedding(vocab, dim).to(device_map["embed"])
        self.block = nn.GRU(dim, dim, batch_first=True).to(device_map["block"])
        self.head = nn.Linear(dim, vocab).to(device_map["head"])

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, ids):
        x = self.embed(ids)
        x, _ = self.block(x.to(self.device_map["block"]))
        return self.head(x.to(self.device_map["head"]))


@dataclass
class StepArgs:
    model: SplitLM
    logits: torch.Tensor
    ids: torch.Tensor
    target_ids: torch.Tensor


def probability_fn(args):
    probs = args.logits[:, -1].softmax(-1)
    return probs.gather(-1, args.target_ids.unsqueeze(-1)).squeeze(-1)  # RAISE # ROOT


def entropy_fn(args):
    logp = args.logits[:, -1].log_softmax(-1)
    return -(logp.exp() * logp).sum(-1)


def contrast_prob_diff_fn(args, contrast_ids):
    contrast = contrast_ids.to(args.logits.device)
    probs = args.logits[:, -1].softmax(-1)
    return probability_fn(args) - probs.gather(-1, contrast.unsqueeze(-1)).squeeze(-1)


STEP_FUNCTIONS = {"entropy": entropy_fn, "probability": probability_fn, "contrast": contrast_prob_diff_fn}


class AttributionModel:
    def __init__(self, model, step="contrast"):
        self.model, self.step_fn = model.eval(), STEP_FUNCTIONS[step]

    def format_step_args(self, ids, target_ids):
        logits = self.model(ids)
        return StepArgs(self.model, logits, ids, target_ids)  # ALSO

    def attribute(self, ids, target_ids, **kwargs):
        ids, target_ids = ids.to(self.model.device), target_ids.to(self.model.device)  # ALSO
        args = self.format_step_args(ids, target_ids)
        score = self.step_fn(args, **kwargs)
        grad = torch.autograd.grad(score.sum(), self.model.embed.weight)[0]
        return grad[ids].norm(dim=-1), score.detach().cpu()


def balanced_map():
    if torch.cuda.device_count() < 2:
        return dict.fromkeys(("embed", "block", "head"), torch.device("cpu"))
    return {"embed": torch.device("cuda:0"), "block": torch.device("cuda:0"), "head": torch.device("cuda:1")}


def main():
    torch.manual_seed(0)
    model = SplitLM(15, 8, balanced_map())
    ids, target = torch.randint(0, 15, (2, 5)), torch.tensor([3, 4])
    scores, entropy = AttributionModel(model, "entropy").attribute(ids, target)
    print("entropy", entropy.tolist(), scores.shape)
    scores, diff = AttributionModel(model).attribute(ids, target, contrast_ids=torch.tensor([7, 8]))
    print("contrast", diff.tolist(), scores.shape)


if __name__ == "__main__":
    main()
