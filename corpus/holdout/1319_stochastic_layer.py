# source: HolyBayes/pytorch_ard#1
# mechanism: a layer draws its noise on the device that it noted when it was built, and the replica of the second GPU has the same note
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


class LinearARD(nn.Linear):
    def __init__(self, in_features, out_features, device, thresh=3.0):
        super().__init__(in_features, out_features, device=device)
        self.device = torch.device(device)
        self.thresh = thresh
        self.log_sigma2 = nn.Parameter(torch.full_like(self.weight, -10.0))

    @property
    def log_alpha(self):
        return self.log_sigma2 - 2 * torch.log(self.weight.abs() + 1e-8)

    def masked_weight(self):
        return torch.where(self.log_alpha < self.thresh, self.weight, torch.zeros_like(self.weight))

    def forward(self, x):
        if not self.training:
            return F.linear(x, self.masked_weight(), self.bias)
        mean = F.linear(x, self.weight, self.bias)
        std = torch.sqrt(1e-8 + F.linear(x.pow(2), torch.exp(self.log_sigma2)))
        noise = torch.randn(mean.shape, device=self.device)  # ROOT
        return mean + std * noise  # RAISE

    def regularization(self):
        k1, k2, k3 = 0.63576, 1.8732, 1.48695
        mdkl = k1 * torch.sigmoid(k2 + k3 * self.log_alpha) - 0.5 * F.softplus(-self.log_alpha) - k1
        return -mdkl.sum()


class Classifier(nn.Module):
    def __init__(self, device, hidden=16):
        super().__init__()
        self.first = LinearARD(8, hidden, device)
        self.second = LinearARD(hidden, 3, device)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

    def regularization(self):
        return self.first.regularization() + self.second.regularization()


class Replicated:
    def __init__(self, module, devices):
        self.module, self.devices = module, devices

    def __call__(self, batch):
        outputs = []
        for chunk, device in zip(batch.chunk(len(self.devices)), self.devices):
            params = {k: p.to(device) for k, p in self.module.named_parameters()}
            outputs.append(functional_call(self.module, params, (chunk.to(device),)))
        return torch.cat([o.to(self.devices[0]) for o in outputs])


def fit(net, module, data, epochs, lr=1e-2, beta=1e-4):
    optimizer = torch.optim.Adam(module.parameters(), lr=lr)
    inputs, labels = data
    module.train()
    for _ in range(epochs):
        logits = net(inputs)
        loss = F.cross_entropy(logits, labels.to(logits.device)) + beta * module.regularization()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def sparsity(module):
    layers = [m for m in module.modules() if isinstance(m, LinearARD)]
    dropped = sum(int((layer.log_alpha >= layer.thresh).sum()) for layer in layers)
    return dropped / sum(layer.weight.numel() for layer in layers)


def main():
    torch.manual_seed(0)
    data = torch.randn(8, 8), torch.randint(0, 3, (8,))
    module = Classifier("cuda:0")
    module.eval()
    print(Replicated(module, ["cuda:0", "cuda:1"])(data[0]).shape)
    print(fit(module, module, (data[0].to("cuda:0"), data[1]), 1))
    print(fit(Replicated(module, ["cuda:0", "cuda:1"]), module, data, 2), sparsity(module))


if __name__ == "__main__":
    main()
