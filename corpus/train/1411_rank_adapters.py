# source: huggingface/peft#541
# mechanism: an adapter that is added to a layer on the GPU moves its matrices to the layer's device, and leaves the tensor with its rank on the CPU
# expect: raises
import torch
from torch import nn


class SVDLinear(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.lora_A = nn.ParameterDict()
        self.lora_E = nn.ParameterDict()
        self.lora_B = nn.ParameterDict()
        self.scaling = {}
        self.ranknum = {}

    @property
    def weight(self):
        return self.base.weight

    def add_adapter(self, name, r, alpha):
        out_features, in_features = self.weight.shape
        self.lora_A[name] = nn.Parameter(torch.randn(r, in_features) * 0.02)
        self.lora_E[name] = nn.Parameter(torch.zeros(r, 1))
        self.lora_B[name] = nn.Parameter(torch.randn(out_features, r) * 0.02)
        self.scaling[name] = float(alpha)
        self.ranknum[name] = torch.full((1,), float(r))  # ROOT
        self.to(self.weight.device)

    def delta(self, x, name):
        update = x @ (self.lora_A[name] * self.lora_E[name]).T @ self.lora_B[name].T
        return update * self.scaling[name] / (self.ranknum[name] + 1e-5)  # RAISE # ALSO

    def forward(self, x):
        result = self.base(x)
        for name in self.lora_A.keys():
            result = result + self.delta(x, name)
        return result


class Classifier(nn.Module):
    def __init__(self, dim=8, classes=3):
        super().__init__()
        self.inp = nn.Linear(dim, dim)
        self.mid = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, x):
        return self.out(torch.relu(self.mid(torch.relu(self.inp(x)))))


def inject(model, targets, name, r=4, alpha=8):
    for child_name, child in list(model.named_children()):
        if child_name in targets and isinstance(child, nn.Linear):
            layer = SVDLinear(child)
            layer.add_adapter(name, r, alpha)
            setattr(model, child_name, layer)
    return model


def orthogonal_penalty(model):
    total, count = 0.0, 0
    for n, p in model.named_parameters():
        if "lora_A" in n:
            eye = torch.eye(p.shape[0], device=p.device)
            total, count = total + (p @ p.T - eye).norm(), count + 1
    return total / max(count, 1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = inject(Classifier().to(device), {"inp", "mid"}, "default")
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-3)
    for _ in range(2):
        x, y = torch.randn(6, 8).to(device), torch.randint(0, 3, (6,)).to(device)
        loss = nn.functional.cross_entropy(model(x), y) + 0.1 * orthogonal_penalty(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
