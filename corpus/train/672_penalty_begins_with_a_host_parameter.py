# source: facebookresearch/PyTorch-BigGraph#178 (fix: PR#182)
# mechanism: [running total] a penalty begins with a term of relation parameters that are kept on the CPU, so the running total is a CPU scalar, and the CUDA terms are added to it in place
# phase: loss; failing op: aten::add_ (0-d cpu += 0-d cuda)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda:0")


class DiagonalRelation(nn.Module):
    def __init__(self, kinds, dim):
        super().__init__()
        self.diagonal = nn.Parameter(torch.ones(kinds, dim))

    def forward(self, nodes, kind):
        return nodes * self.diagonal[kind].to(nodes.device)

    def factors(self, kind):
        return self.diagonal[kind].abs()


class CubicPenalty:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, left, right, relation, kind):
        total = 0  # ALSO
        own = relation.factors(kind)  # ROOT
        total += own.pow(3).sum()  # ALSO
        for nodes in (left, right):
            total += nodes.abs().pow(3).sum()  # RAISE  # ALSO
        return self.weight * total / len(left)


nodes = nn.Embedding(40, 6).to(dev)
relation = DiagonalRelation(3, 6)
penalty = CubicPenalty(1e-3)
for kind in range(3):
    edges = torch.randint(0, 40, (2, 16), device=dev)
    left, right = nodes(edges[0]), nodes(edges[1])
    fit = (relation(left, kind) * right).sum(1)
    loss = nn.functional.softplus(-fit).mean() + penalty(left, right, relation, kind)
    loss.backward()
