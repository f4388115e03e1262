# source: Lightning-AI/pytorch-lightning#7023
# mechanism: a loss term that is switched off is replaced with a fresh CPU tensor, and all terms are stacked for logging
# expect: raises
import torch
from torch import nn
import torch.nn.functional as F


class Config:
    dim, latent, vocab = 12, 4, 20
    kl_weight = 0.1
    kl_warmup = 2


class TextVAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.mu = nn.Linear(cfg.dim, cfg.latent)
        self.logvar = nn.Linear(cfg.dim, cfg.latent)
        self.out = nn.Linear(cfg.latent, cfg.vocab)

    def forward(self, ids):
        h = self.emb(ids).mean(1)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.out(z), mu, logvar


class LossBook:
    def __init__(self):
        self.rows = []

    def add(self, terms):
        row = torch.stack([t.detach() for t in terms.values()])  # RAISE # ALSO
        self.rows.append(row.cpu())

    def summary(self, names):
        means = torch.stack(self.rows).mean(0)
        return dict(zip(names, means.tolist()))


class VAETask(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.model = TextVAE(cfg)
        self.book = LossBook()
        self.global_step = 0

    def reconstruction(self, logits, ids):
        target = F.one_hot(ids, self.cfg.vocab).sum(1).clamp(max=1).float()
        return F.binary_cross_entropy_with_logits(logits, target)

    def kl_term(self, mu, logvar):
        if self.global_step < self.cfg.kl_warmup:
            return torch.tensor(0.0)  # ROOT
        return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()

    def training_step(self, ids):
        logits, mu, logvar = self.model(ids)
        rec = self.reconstruction(logits, ids)
        kl = self.kl_term(mu, logvar)  # ALSO
        total = rec + self.cfg.kl_weight * kl
        self.book.add({"total": total, "rec": rec, "kl": kl})
        self.global_step += 1
        return total


def fit(task, batches, device):
    task.to(device).train()
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-2)
    for ids in batches:
        loss = task.training_step(ids.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return task.book.summary(["total", "rec", "kl"])


def main():
    torch.manual_seed(0)
    cfg = Config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [torch.randint(0, cfg.vocab, (4, 7)) for _ in range(4)]
    print(fit(VAETask(cfg), batches, device))


if __name__ == "__main__":
    main()
