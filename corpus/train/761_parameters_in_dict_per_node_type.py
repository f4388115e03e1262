# source: benedekrozemberczki/pytorch_geometric_temporal#166, PR#180
# mechanism: [module list not registered] parameters kept in a Python dict, one per node type, are not registered, so .to() leaves them on CPU
# phase: forward; failing op: aten::mm
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class HeteroGate(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.conv = nn.Linear(out_channels, out_channels)
        self.create_gate()

    def create_gate(self):
        self.w_i = {k: nn.Parameter(torch.randn(c, self.out_channels)) for k, c in self.in_channels.items()}  # ROOT

    def forward(self, x_dict):
        h = {k: torch.zeros(x.shape[0], self.out_channels, device=x.device) for k, x in x_dict.items()}
        h = {k: self.conv(v) for k, v in h.items()}
        return {k: (h[k] + x @ self.w_i[k]).sigmoid() for k, x in x_dict.items()}  # RAISE

net = HeteroGate({"author": 3, "paper": 5}, 4).to(dev)
net({"author": torch.ones(2, 3, device=dev), "paper": torch.ones(6, 5, device=dev)})
