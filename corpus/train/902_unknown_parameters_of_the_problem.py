# source: PINA-org/PINA#281, fix in PR#283 and #263 ('the torch.nn.Parameters are not assigned to the device')
# mechanism: [module list not registered] trainable parameters live in a dict of the problem object, which is no Module; moving the solver moves the network only
# phase: loss; failing op: aten::mul (cpu 1-D x cuda)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class InverseProblem:
    def __init__(self, ranges):
        self.unknown_parameters = {}
        for name, (low, high) in ranges.items():
            start = torch.rand(1) * (high - low) + low
            self.unknown_parameters[name] = nn.Parameter(start)  # ROOT

    def residual(self, x, u):
        du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        return du - self.unknown_parameters["mu"] * u  # RAISE

class Solver(nn.Module):
    def __init__(self, problem, net):
        super().__init__()
        self.problem, self.net = problem, net  # ALSO

    def forward(self, x):
        return self.problem.residual(x, self.net(x)).square().mean()

solver = Solver(InverseProblem({"mu": (-1.0, 1.0)}), nn.Linear(1, 1))
opt = torch.optim.Adam([*solver.net.parameters(), *solver.problem.unknown_parameters.values()])
solver.to(dev)
solver(torch.rand(6, 1, device=dev, requires_grad=True)).backward()
