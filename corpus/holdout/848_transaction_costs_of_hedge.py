# source: pfnet-research/pfhedge#589, #576; PR#617 (solved by PR#577)
# mechanism: [factory call without device=] list of proportional costs, one for each hedging instrument, is turned into a tensor inside the profit-and-loss function; hedging without costs skips that branch
# phase: loss; failing op: aten::mul (cuda 3-D x cpu 3-D)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def profit(spot, unit, cost=None, payoff=None):
    out = unit[..., :-1].mul(spot.diff(dim=-1)).sum(dim=(-2, -1))
    if payoff is not None:
        out = out - payoff
    if cost is not None:
        c = torch.tensor(cost).unsqueeze(0).unsqueeze(-1)  # ROOT
        out = out - (spot[..., 1:] * unit.diff(dim=-1).abs() * c).sum(dim=(-2, -1))  # RAISE  # ALSO
    return out

class Stock:
    def __init__(self, cost=0.0, sigma=0.2):
        self.cost, self.sigma = cost, sigma

    def simulate(self, n_paths, n_steps, device):
        z = torch.randn(n_paths, n_steps, device=device) * self.sigma * 0.1
        self.spot = z.cumsum(-1).exp()

class Hedger(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def compute_loss(self, hedge, payoff, n_paths=4, n_steps=5):
        for stock in hedge:
            stock.simulate(n_paths, n_steps, next(self.parameters()).device)
        spot = torch.stack([stock.spot for stock in hedge], dim=1)
        unit = self.model(spot.transpose(1, 2)).transpose(1, 2)
        costs = [stock.cost for stock in hedge]
        return -profit(spot, unit, cost=costs if any(costs) else None, payoff=payoff(spot)).mean()

hedger = Hedger(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))).to(dev)
call = lambda spot: (spot[:, 0, -1] - 1.0).clamp(min=0)
hedger.compute_loss([Stock(), Stock()], call).backward()
hedger.compute_loss([Stock(cost=1e-3), Stock(cost=2e-3)], call).backward()
