# source: pykeen/pykeen#801
# mechanism: a sampler's filter holds the known triples on the CPU and is not moved with the training loop's batches
# expect: raises
import torch
from torch import nn


class PythonSetFilterer(nn.Module):
    def __init__(self, mapped_triples):
        super().__init__()
        self.known = {tuple(t) for t in mapped_triples.tolist()}

    def contains(self, batch):
        flags = [tuple(t) in self.known for t in batch.cpu().tolist()]
        return torch.tensor(flags, device=batch.device)


class HashFilterer(nn.Module):
    """Keeps one number for each known triple in a sorted buffer."""

    def __init__(self, mapped_triples):
        super().__init__()
        self.base = int(mapped_triples.max()) + 1
        self.register_buffer("keys", self.encode(mapped_triples).sort().values)

    def encode(self, triples):
        return (triples[..., 0] * self.base + triples[..., 1]) * self.base + triples[..., 2]

    def contains(self, batch):
        return torch.isin(self.encode(batch), self.keys)  # RAISE # ALSO


class BasicNegativeSampler(nn.Module):
    def __init__(self, mapped_triples, num_entities, num_negs=2, filterer=None):
        super().__init__()
        self.num_entities, self.num_negs = num_entities, num_negs
        self.filterer = filterer(mapped_triples) if filterer is not None else None

    def corrupt(self, positive):
        negative = positive.repeat_interleave(self.num_negs, dim=0)
        fresh = torch.randint(self.num_entities, (len(negative),), device=positive.device)
        column = torch.where(torch.rand(len(negative), device=positive.device) < 0.5, 0, 2)
        return negative.scatter(1, column.unsqueeze(1), fresh.unsqueeze(1))

    def sample(self, positive):
        negative = self.corrupt(positive)
        if self.filterer is None:
            return negative, None
        return negative, ~self.filterer.contains(negative)


class RotatE(nn.Module):
    def __init__(self, entities, relations, dim=4):
        super().__init__()
        self.entity = nn.Embedding(entities, 2 * dim)
        self.phase = nn.Embedding(relations, dim)

    def forward(self, triples):
        h_re, h_im = self.entity(triples[:, 0]).chunk(2, -1)
        t_re, t_im = self.entity(triples[:, 2]).chunk(2, -1)
        cos, sin = self.phase(triples[:, 1]).cos(), self.phase(triples[:, 1]).sin()
        re, im = h_re * cos - h_im * sin - t_re, h_re * sin + h_im * cos - t_im
        return -(re**2 + im**2 + 1e-9).sqrt().sum(-1)


class SLCWATrainingLoop:
    def __init__(self, model, triples, entities, filterer=None):
        self.model, self.triples = model, triples
        self.sampler = BasicNegativeSampler(triples, entities, filterer=filterer)  # ALSO
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    @property
    def device(self):
        return next(self.model.parameters()).device

    def train(self, epochs, batch_size=8):
        device = self.device  # ROOT
        for _ in range(epochs):
            for positive in self.triples.split(batch_size):
                positive = positive.to(device)
                negative, mask = self.sampler.sample(positive)
                pos, neg = self.model(positive), self.model(negative)
                term = nn.functional.softplus(neg)
                term = term[mask] if mask is not None else term
                loss = nn.functional.softplus(-pos).mean() + term.sum() / len(neg)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    triples = torch.stack([torch.randint(0, n, (20,)) for n in (9, 3, 9)], dim=1)
    loop = SLCWATrainingLoop(RotatE(9, 3).to(device), triples, 9, filterer=HashFilterer)
    print(loop.train(2))
