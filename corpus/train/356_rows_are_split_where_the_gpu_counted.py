# source: https://github.com/cai4cai/torchsparsegradutils/issues/58
# mechanism: rows are split into groups at indices that were counted on the GPU, and tensor_split reads its indices on the host
# phase: forward; aten::tensor_split
# expect: raises
import torch

device = torch.device("cuda")


class Groups:
    def __init__(self, labels, count):
        self.order = labels.argsort(stable=True)
        self.sizes = labels.bincount(minlength=count)  # ALSO

    def borders(self):
        return self.sizes.cumsum(0)[:-1]  # ROOT


class Experts(torch.nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.route = torch.nn.Linear(width, count)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))

    def forward(self, x):
        scores = self.route(x).softmax(-1)
        best, labels = scores.max(-1)
        groups = Groups(labels, len(self.experts))
        parts = torch.tensor_split(x[groups.order], groups.borders())  # RAISE  # ALSO
        done = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])
        return torch.empty_like(x).index_copy(0, groups.order, done) * best[:, None]


model = Experts(count=3, width=4).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(2):
    x = torch.randn(10, 4, device=device)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
