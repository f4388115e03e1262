# source: tsrobinson/SyGNet#4
# mechanism: [plain attribute tensor] column indices of each activation group are a Python list of tensors made on CPU; neither a buffer nor a tensor attribute
# phase: forward; failing op: aten::index_select (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MixedActivation(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.names = [name for name, _ in groups]
        self.columns = [torch.tensor(cols) for _, cols in groups]  # ROOT
        self.funcs = nn.ModuleDict({"sigmoid": nn.Sigmoid(), "identity": nn.Identity(), "softmax": nn.Softmax(1)})

    def forward(self, x):
        out = []
        for name, cols in zip(self.names, self.columns):
            part = torch.index_select(x, 1, cols)  # RAISE  # ALSO
            out.append(self.funcs[name](part))
        return torch.cat(out, 1)

net = nn.Sequential(nn.Linear(3, 5), MixedActivation([("identity", [0, 1]), ("softmax", [2, 3, 4])])).to(dev)
net(torch.randn(2, 3, device=dev))
