# source: cornellius-gp/gpytorch#737 (again #816, #1886)
# mechanism: [factory call without device=] smallest gap of each input dimension is collected in a CPU torch.zeros; filling it element by element copies silently from the GPU, the first arithmetic with it fails
# phase: initialisation of hyperparameters from training data; failing op: aten::div_
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MixtureKernel(nn.Module):
    def __init__(self, num_mixtures, dims):
        super().__init__()
        self.num_mixtures, self.dims = num_mixtures, dims
        self.raw_weights = nn.Parameter(torch.zeros(num_mixtures))
        self.raw_means = nn.Parameter(torch.zeros(num_mixtures, dims))
        self.raw_scales = nn.Parameter(torch.zeros(num_mixtures, dims))

    def initialize_from_data(self, train_x, train_y):
        ordered = train_x.sort(dim=0)[0]
        max_dist = ordered[-1] - ordered[0]
        gaps = ordered[1:] - ordered[:-1]
        min_dist = torch.zeros(1, self.dims)  # ROOT
        for d in range(self.dims):
            nonzero = gaps[:, d].nonzero()
            min_dist[:, d] = gaps[nonzero[0], d]
        self.raw_scales.data.normal_().mul_(max_dist).abs_().pow_(-1)
        self.raw_means.data.uniform_().mul_(0.5).div_(min_dist)  # RAISE  # ALSO
        self.raw_weights.data.fill_(train_y.std() / self.num_mixtures)

    def forward(self, a, b):
        diff = (a.unsqueeze(1) - b.unsqueeze(0)).unsqueeze(2)
        return (self.raw_weights * (torch.cos(diff * self.raw_means) * torch.exp(-(diff * self.raw_scales) ** 2)).prod(-1)).sum(-1)


train_x, train_y = torch.rand(12, 2, device=dev), torch.randn(12, device=dev)
kernel = MixtureKernel(4, 2).to(dev)
kernel.initialize_from_data(train_x, train_y)
kernel(train_x, train_x)
