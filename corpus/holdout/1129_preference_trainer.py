# source: huggingface/trl PR#1919
# mechanism: a trainer for preferences returns its loss on the last device of a split model, and the training loop adds it to a running sum on the device of the arguments.
# needs: 2 GPUs
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class TrainingArguments:
    device: str = "cuda:0"
    steps: int = 3
    lr: float = 1e-2
    beta: float = 0.1


class PipelinedLM(nn.Module):
    def __init__(self, first, last, vocab=20, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).to(first)
        self.rnn = nn.GRU(dim, dim, batch_first=True).to(first)
        self.head = nn.Linear(dim, vocab).to(last)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden.to(self.head.weight.device))


class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    def prepare_inputs(self, batch):
        return {k: v.to(self.args.device) for k, v in batch.items()}

    def compute_loss(self, model, inputs):
        logits = model(inputs["ids"])[:, :-1]
        labels = inputs["ids"][:, 1:].to(logits.device)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return loss.to(self.args.device)

    def training_step(self, batch):
        loss = self.compute_loss(self.model, self.prepare_inputs(batch))  # ALSO
        loss.backward()
        return loss.detach()  # ALSO

    def train(self, batches):
        tr_loss = torch.tensor(0.0).to(self.args.device)
        for step, batch in zip(range(self.args.steps), batches):
            tr_loss_step = self.training_step(batch)  # ALSO
            tr_loss += tr_loss_step  # RAISE # ALSO
            self.optimizer.step()
            self.optimizer.zero_grad()
        return tr_loss.item() / (step + 1)


class OddsRatioTrainer(Trainer):
    def sequence_logps(self, model, ids):
        logits = model(ids)[:, :-1]
        labels = ids[:, 1:].to(logits.device)
        return logits.log_softmax(-1).gather(2, labels[..., None]).squeeze(-1).mean(dim=1)  # ALSO

    def odds_ratio_loss(self, chosen, rejected):
        log_odds = (chosen - rejected) - (torch.log1p(-chosen.exp()) - torch.log1p(-rejected.exp()))
        return -self.args.beta * F.logsigmoid(log_odds)

    def compute_loss(self, model, inputs):
        chosen = self.sequence_logps(model, inputs["chosen"])
        rejected = self.sequence_logps(model, inputs["rejected"])
        loss = -chosen.mean() + self.odds_ratio_loss(chosen, rejected).mean()  # ALSO
        return loss  # ROOT


def preference_batches(count):
    for _ in range(count):
        yield {"chosen": torch.randint(0, 20, (2, 6)), "rejected": torch.randint(0, 20, (2, 6))}


def main():
    torch.manual_seed(0)
    args = TrainingArguments()
    model = PipelinedLM("cuda:0", "cuda:1")
    sft = Trainer(model, args).train({"ids": torch.randint(0, 20, (2, 6))} for _ in range(3))
    print("sft", sft)
    print("orpo", OddsRatioTrainer(model, args).train(preference_batches(3)))


if __name__ == "__main__":
    main()
