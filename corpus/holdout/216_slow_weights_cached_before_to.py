# source: michaelrzhang/lookahead PR#8
# mechanism: an optimizer copies the weights when it is made; the model is moved afterwards, the copies are not
# phase: optimizer step; aten::add_
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Lookahead(torch.optim.Optimizer):
    def __init__(self, params, alpha):
        super().__init__(params, {"alpha": alpha})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["slow"] = p.detach().clone()  # ROOT

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(group["alpha"]).add_(self.state[p]["slow"], alpha=1 - group["alpha"])  # RAISE


net = torch.nn.Linear(3, 1)  # ALSO
optimizer = Lookahead(net.parameters(), alpha=0.5)  # ALSO
net.to(dev)  # ALSO
net(torch.ones(2, 3, device=dev)).sum().backward()
optimizer.step()
