# source: kmkurn/pytorch-crf#101
# mechanism: the training loop moves the tokens but not the tags, and the CRF makes its default mask like the tags
# expect: raises
import torch
from torch import nn


class CRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags).uniform_(-0.1, 0.1))

    def forward(self, emissions, tags, mask=None):
        if mask is None:
            mask = torch.ones_like(tags, dtype=torch.bool)
        return (self._normalizer(emissions, mask) - self._numerator(emissions, tags, mask)).mean()

    def _normalizer(self, emissions, mask):
        score = self.start + emissions[:, 0]
        for i in range(1, emissions.shape[1]):
            nxt = score.unsqueeze(2) + self.transitions + emissions[:, i].unsqueeze(1)
            nxt = torch.logsumexp(nxt, dim=1)
            score = torch.where(mask[:, i].unsqueeze(1), nxt, score)  # RAISE
        return torch.logsumexp(score + self.end, dim=1)

    def _numerator(self, emissions, tags, mask):
        emit = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        trans = self.transitions[tags[:, :-1], tags[:, 1:]]
        total = (emit * mask).sum(1) + (trans * mask[:, 1:]).sum(1)
        last = tags.gather(1, mask.long().sum(1, keepdim=True) - 1).squeeze(1)
        return total + self.start[tags[:, 0]] + self.end[last]

    def decode(self, emissions):
        score, history = self.start + emissions[:, 0], []
        for i in range(1, emissions.shape[1]):
            best, idx = (score.unsqueeze(2) + self.transitions).max(dim=1)
            history.append(idx)
            score = best + emissions[:, i]
        tag = (score + self.end).argmax(1)
        path = [tag]
        for idx in reversed(history):
            tag = idx.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path[::-1], 1)


class Tagger(nn.Module):
    def __init__(self, vocab, num_tags, dim=10):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * dim, num_tags)
        self.crf = CRF(num_tags)

    def emissions(self, ids):
        return self.fc(self.lstm(self.emb(ids))[0])

    def loss(self, ids, tags):
        return self.crf(self.emissions(ids), tags)


def train_epoch(model, loader, optimizer, device):
    model.train()
    for batch in loader:
        ids = batch["ids"].to(device)
        tags = batch["tags"]  # ROOT
        loss = model.loss(ids, tags)  # ALSO
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    hits = total = 0
    for batch in loader:
        pred = model.crf.decode(model.emissions(batch["ids"].to(device)))
        hits += (pred.cpu() == batch["tags"]).sum().item()
        total += batch["tags"].numel()
    return hits / total


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = [{"ids": torch.randint(0, 30, (3, 5)), "tags": torch.randint(0, 4, (3, 5))} for _ in range(2)]
    model = Tagger(30, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    print(evaluate(model, loader, device), train_epoch(model, loader, optimizer, device))


if __name__ == "__main__":
    main()
