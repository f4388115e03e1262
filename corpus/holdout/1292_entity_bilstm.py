# source: taishan1994/pytorch_triple_extraction#8
# mechanism: the tensors of an initial LSTM state are moved in a loop whose results are not kept, as to() does not work in place
# expect: raises
import torch
from torch import nn


class NerConfig:
    vocab, dim, hidden, layers, tags = 40, 12, 10, 1, 5
    seq_len, batch_size = 8, 3


class TokenEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.word = nn.Embedding(cfg.vocab, cfg.dim)
        self.position = nn.Embedding(cfg.seq_len, cfg.dim)
        self.norm = nn.LayerNorm(cfg.dim)

    def forward(self, ids):
        pos = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.word(ids) + self.position(pos))


class BiLstmNer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.encoder = TokenEncoder(cfg)
        self.lstm = nn.LSTM(cfg.dim, cfg.hidden, cfg.layers, bidirectional=True, batch_first=True)
        self.classifier = nn.Linear(2 * cfg.hidden, cfg.tags)

    def init_hidden(self, batch_size):
        shape = (2 * self.cfg.layers, batch_size, self.cfg.hidden)
        return torch.randn(shape) * 0.01, torch.randn(shape) * 0.01  # ALSO

    def forward(self, ids, mask, labels=None):
        x = self.encoder(ids)
        hidden = self.init_hidden(ids.shape[0])  # ALSO
        for state in hidden:
            state.to(ids.device)  # ROOT
        out, _ = self.lstm(x, hidden)  # RAISE # ALSO
        logits = self.classifier(out)
        if labels is None:
            return logits
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return logits, (loss * mask).sum() / mask.sum()


class NerTrainer:
    def __init__(self, cfg, device):
        self.device = device
        self.model = BiLstmNer(cfg).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)

    def batches(self, data):
        for batch in data:
            yield {k: v.to(self.device) for k, v in batch.items()}

    def train(self, data):
        self.model.train()
        for batch in self.batches(data):
            _, loss = self.model(**batch)
            self.model.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def predict(self, ids):
        self.model.eval()
        ids = ids.to(self.device)
        logits = self.model(ids, torch.ones_like(ids))
        return logits.argmax(-1).cpu().tolist()


def fake_data(cfg, n):
    for _ in range(n):
        ids = torch.randint(1, cfg.vocab, (cfg.batch_size, cfg.seq_len))
        lens = torch.randint(3, cfg.seq_len + 1, (cfg.batch_size,))
        mask = (torch.arange(cfg.seq_len) < lens.unsqueeze(1)).float()
        yield {"ids": ids, "mask": mask, "labels": torch.randint(0, cfg.tags, ids.shape)}


def main():
    torch.manual_seed(0)
    cfg = NerConfig()
    trainer = NerTrainer(cfg, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(trainer.train(fake_data(cfg, 2)))
    print(trainer.predict(torch.randint(1, cfg.vocab, (1, cfg.seq_len))))


if __name__ == "__main__":
    main()
