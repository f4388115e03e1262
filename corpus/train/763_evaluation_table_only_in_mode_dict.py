# source: pykeen/pykeen#1228, PR#1229
# mechanism: [module list not registered] a dict maps the mode to its embedding module; the training one is an attribute as well, the testing one is only in the dict, so training works and evaluation does not
# phase: evaluation; failing op: aten::embedding / index_select
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class InductiveScorer(nn.Module):
    def __init__(self, num_train, num_test, num_relations, dim=4):
        super().__init__()
        self.relations = nn.Embedding(num_relations, dim)
        self.entities = nn.Embedding(num_train, dim)
        self.by_mode = {"training": self.entities}  # ALSO
        self.by_mode["testing"] = nn.Embedding(num_test, dim)  # ROOT

    def forward(self, hrt, mode):
        table = self.by_mode[mode]
        h, t = table(hrt[:, 0]), table(hrt[:, 2])  # RAISE
        return (h * self.relations(hrt[:, 1]) * t).sum(-1)

net = InductiveScorer(6, 3, 2).to(dev)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.tensor([[0, 1, 5], [2, 0, 4]], device=dev), "training").sum().backward()
opt.step()
with torch.no_grad():
    net(torch.tensor([[0, 1, 2]], device=dev), "testing")
