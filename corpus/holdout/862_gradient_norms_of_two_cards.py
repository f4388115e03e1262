# source: pytorch/pytorch#38605, PR#38615 (clip_grad_norm_ fails when parameters are on different devices)
# mechanism: [zero-dim scalar] the parameters' 0-dim norms stay where the parameters are; a model split over two GPUs gives norms of both, which are stacked
# phase: gradient clipping; failing op: aten::stack/cat of 0-d cuda:0 and cuda:1
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class TwoCards(nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.back = nn.Linear(6, 5).to(dev), nn.Linear(5, 2).to(d1)

    def forward(self, x):
        return self.back(self.front(x).relu().to(d1))

def total_norm(norms):
    return torch.linalg.vector_norm(torch.stack(norms))  # RAISE  # ALSO

def clip_gradients(params, max_norm):
    params = [p for p in params if p.grad is not None]
    norms = [torch.linalg.vector_norm(p.grad.detach()) for p in params]  # ROOT
    factor = max_norm / (total_norm(norms) + 1e-6)
    if factor < 1:
        for p in params:
            p.grad.mul_(factor.to(p.grad.device))

net = TwoCards()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(8, 6, device=dev)).square().sum().backward()
clip_gradients(net.parameters(), 1.0)
opt.step()
