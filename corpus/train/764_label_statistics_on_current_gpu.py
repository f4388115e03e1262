# source: seyonechithrananda/bert-loves-chemistry PR#15
# mechanism: [plain attribute tensor] label mean and deviation are plain attributes put on the GPU by hand with .cuda(); that is the first GPU, the model goes to another one
# phase: loss; failing op: aten::sub (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Regressor(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.stats = torch.tensor([mean, std]).cuda()  # ROOT
        self.encoder = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def normalize(self, labels):
        mean, std = self.stats  # ALSO
        return (labels - mean) / std  # RAISE

    def forward(self, x, labels=None):
        logits = self.head(self.encoder(x).tanh())
        if labels is None:
            return logits
        return F.mse_loss(logits, self.normalize(labels))

net = Regressor([0.5, 1.0], [2.0, 3.0]).to(d1)
net(torch.randn(3, 4, device=d1))
net(torch.randn(3, 4, device=d1), labels=torch.ones(3, 2, device=d1))
