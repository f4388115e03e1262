# source: LiuXiaoxuanPKU/OSD#9
# mechanism: the trainer's step has an early way out that returns a loss made of a plain number on the CPU, and the losses of the micro batches are stacked
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class LM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


class TokenBuffer:
    def __init__(self, capacity):
        self.capacity = capacity
        self.rows = []

    def add(self, ids, wrong):
        self.rows.append((ids, wrong))

    def ready(self):
        return len(self.rows) >= self.capacity

    def drain(self):
        rows, self.rows = self.rows, []
        return rows


class OnlineDistillTrainer:
    def __init__(self, student, teacher, device, update_interval=3, accumulation=2):
        self.student = student.to(device)
        self.teacher = teacher.to(device).eval()
        self.device = device
        self.buffer = TokenBuffer(update_interval)
        self.accumulation = accumulation
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=1e-3)

    @torch.no_grad()
    def speculate(self, prompt, k=4):
        ids = prompt
        for _ in range(k):
            ids = torch.cat([ids, self.student(ids)[:, -1:].argmax(-1)], dim=1)
        verified = self.teacher(ids).argmax(-1)[:, prompt.size(1) - 1 : -1]
        return ids, verified != ids[:, prompt.size(1) :]

    def distill_loss(self, rows):
        losses = []
        for ids, wrong in rows:
            with torch.no_grad():
                target = self.teacher(ids).softmax(-1)
            logp = self.student(ids).log_softmax(-1)
            per_token = F.kl_div(logp, target, reduction="none").sum(-1)
            weight = torch.ones_like(per_token)
            weight[:, -wrong.size(1) :] += wrong.float()
            losses.append((per_token * weight).mean())
        return torch.stack(losses).mean()

    def training_step(self, inputs):
        ids, wrong = self.speculate(inputs.to(self.device))
        self.buffer.add(ids, wrong)
        if not self.buffer.ready():
            return torch.tensor(-1.0)  # ROOT
        loss = self.distill_loss(self.buffer.drain())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def train(self, loader):
        log, window = [], []
        for inputs in loader:
            window.append(self.training_step(inputs))  # ALSO
            if len(window) == self.accumulation:
                log.append(torch.stack(window).max())  # RAISE
                window.clear()
        return torch.stack(log).mean().item()


def prompts(count, vocab):
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(0, vocab, (1, 5), generator=generator) for _ in range(count)]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = OnlineDistillTrainer(LM(20, 8), LM(20, 24), device)
    print(trainer.train(prompts(6, 20)))


if __name__ == "__main__":
    main()
