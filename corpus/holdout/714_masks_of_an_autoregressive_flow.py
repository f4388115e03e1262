# source: pyro-ppl/pyro PR#3344
# mechanism: [default device] the "current default device" is asked of torch.Tensor(), which torch.set_default_device does not change; masks of an autoregressive net mix both
# phase: model construction; failing op: aten::ge
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def sample_mask_indices(input_dim, hidden_dim):
    indices = torch.linspace(1, input_dim, steps=hidden_dim, device="cpu").to(torch.Tensor().device)  # ROOT
    return torch.round(indices)  # ALSO

def create_masks(input_dim, hidden_dims, permutation):
    var_index = torch.empty(permutation.shape)
    var_index[permutation] = torch.arange(input_dim, dtype=torch.get_default_dtype())
    hidden_indices = [sample_mask_indices(input_dim - 1, h) for h in hidden_dims]  # ALSO
    masks, previous = [], 1 + var_index
    for current in hidden_indices:
        masks.append((current.unsqueeze(-1) >= previous.unsqueeze(0)).float())  # RAISE
        previous = current
    masks.append(((1 + var_index).unsqueeze(-1) > previous.unsqueeze(0)).float())
    return masks

class MaskedLinear(nn.Linear):
    def __init__(self, mask):
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)

class AutoRegressiveNN(nn.Module):
    def __init__(self, input_dim, hidden_dims):
        super().__init__()
        self.layers = nn.ModuleList(MaskedLinear(m) for m in create_masks(input_dim, hidden_dims, torch.randperm(input_dim)))

    def forward(self, x):
        return self.layers[1](self.layers[0](x).relu())

torch.set_default_device(dev)
AutoRegressiveNN(5, [8])(torch.randn(3, 5))
