# source: mit-ll-responsible-ai/responsible-ai-toolbox#45
# mechanism: [generator device] perturbation model falls back on PyTorch's global generator, which is the CPU's; it is handed on to an in-place draw into a tensor like the CUDA batch
# phase: adversarial perturbation; failing op: Tensor.normal_ ("Expected a 'cuda' device type for generator but found 'cpu'")
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def uniform_like_l2_ball_(x, epsilon, generator):
    flat = x.flatten(1)
    z = flat.new_empty(len(flat), flat.shape[1] + 2)
    z.normal_(generator=generator)  # RAISE
    z = z / z.norm(dim=1, keepdim=True)
    return x.copy_(epsilon * z[:, :flat.shape[1]].view_as(x))

class PerturbationModel(nn.Module):
    def __init__(self, epsilon, generator=None):
        super().__init__()
        self.epsilon = epsilon
        self.generator = torch.default_generator if generator is None else generator  # ROOT
        self.delta = None

    def initialize(self, x):
        self.delta = nn.Parameter(uniform_like_l2_ball_(torch.empty_like(x), self.epsilon, self.generator))

    def forward(self, x):
        if self.delta is None:
            self.initialize(x)
        return x + self.delta

attack, net = PerturbationModel(0.1).to(dev), nn.Linear(6, 2).to(dev)
x = torch.randn(4, 2, 3, device=dev)
net(attack(x).flatten(1))
