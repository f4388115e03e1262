# source: ray-project/ray#14659, pytorch/pytorch#12082
# mechanism: a torch.distributions object holds tensors, but Module.to() does not reach into it
# phase: loss; aten::sub inside torch.distributions
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
        self.prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))  # ROOT

    def forward(self, x):
        code = self.fc(x)
        return self.prior.log_prob(code).sum()  # RAISE  # ALSO


Encoder().to(dev)(torch.randn(3, 4, device=dev))
