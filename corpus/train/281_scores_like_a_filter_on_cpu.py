# source: pykeen/pykeen PR#936
# mechanism: zeros_like() takes the device of its argument, and the filter of known triples is on the CPU
# phase: loss; aten::add
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Sampler:
    def __init__(self, entities, known):
        self.entities, self.known = entities, known

    def corrupt(self, triples, count):
        tails = torch.randint(self.entities, (len(triples), count))
        pairs = zip(triples, tails.tolist())
        unknown = torch.tensor([[(h, r, tail) not in self.known for tail in row] for (h, r, _), row in pairs])
        return tails, unknown


class Embeddings(torch.nn.Module):
    def __init__(self, entities, relations, width):
        super().__init__()
        self.entities, self.relations = torch.nn.Embedding(entities, width), torch.nn.Embedding(relations, width)

    def forward(self, heads, relations, tails):
        query = self.entities(heads) + self.relations(relations)
        return -(query.unsqueeze(1) - self.entities(tails)).norm(dim=-1)


def softmax_loss(positive, negative, unknown):
    filled = torch.zeros_like(unknown, dtype=positive.dtype)  # ROOT
    filled = filled.masked_fill(~unknown, float("-inf")) + negative  # RAISE
    truth = torch.zeros(len(positive), dtype=torch.long, device=positive.device)
    return torch.nn.functional.cross_entropy(torch.cat([positive, filled], 1), truth)


triples = [(0, 0, 1), (1, 1, 2), (3, 0, 2)]
model = Embeddings(entities=5, relations=2, width=4).to(dev)
heads, relations, tails = torch.tensor(triples, device=dev).unbind(1)
corrupted, unknown = Sampler(5, set(triples)).corrupt(triples, count=4)  # ALSO
positive = model(heads, relations, tails.unsqueeze(1))
softmax_loss(positive, model(heads, relations, corrupted.to(dev)), unknown).backward()  # ALSO
