# source: tonyduan/normalizing-flows PR#6
# mechanism: [plain attribute tensor] base density is a torch.distributions object given to the model; its loc and covariance are no buffers and stay on CPU when the model moves
# phase: log-likelihood; failing op: aten::sub inside MultivariateNormal.log_prob
# expect: raises
import torch
import torch.nn as nn
from torch.distributions import MultivariateNormal

dev = torch.device("cuda", 0)


class Affine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mu, self.log_sigma = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        z = (x - self.mu) * torch.exp(-self.log_sigma)
        return z, -self.log_sigma.sum().expand(x.shape[0])


class FlowModel(nn.Module):
    def __init__(self, prior, flows):
        super().__init__()
        self.prior, self.flows = prior, nn.ModuleList(flows)

    def forward(self, x):
        log_det = torch.zeros(x.shape[0], device=x.device)
        for flow in self.flows:
            x, ld = flow(x)
            log_det = log_det + ld
        return self.prior.log_prob(x), log_det  # RAISE


prior = MultivariateNormal(torch.zeros(2), torch.eye(2))  # ROOT
model = FlowModel(prior, [Affine(2) for _ in range(3)]).to(dev)
log_prob, log_det = model(torch.randn(16, 2, device=dev))
loss = -(log_prob + log_det).mean()
