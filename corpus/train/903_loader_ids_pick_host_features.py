# source: dmlc/dgl PR#4242, issue #4234 (Accessing data from the indexes stored in same device)
# mechanism: [index tensor] feature store stays on the CPU to save memory, the sampling loader yields its node ids on the GPU
# phase: training loop; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch

dev = torch.device("cuda", 0)


class NodeLoader:
    def __init__(self, neighbours, seeds, batch, device):
        self.neighbours, self.seeds, self.batch, self.device = neighbours, seeds, batch, device

    def __iter__(self):
        for out in self.seeds.split(self.batch):
            ids = torch.cat([out, self.neighbours[out].flatten()]).unique()
            yield ids.to(self.device), out.to(self.device)  # ROOT

nfeat = torch.randn(10, 4)
labels = torch.randint(0, 2, (10,), device=dev)
net = torch.nn.Linear(4, 2).to(dev)
loader = NodeLoader((torch.arange(20).view(10, 2) * 3 + 1) % 10, torch.arange(6), 3, dev)
for input_nodes, output_nodes in loader:
    x = nfeat[input_nodes].to(dev)  # RAISE  # ALSO
    logits = net(x)[torch.searchsorted(input_nodes, output_nodes)]
    torch.nn.functional.cross_entropy(logits, labels[output_nodes]).backward()
