# source: LaurentMazare/tch-rs#83
# mechanism: [index tensor] random row numbers of a minibatch are drawn on the CPU and given to index_select of a data set that lives on CUDA; the loader's device is used only after the selection
# phase: data loading; failing op: aten::index_select (argument index)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Dataset:
    def __init__(self, images, labels, device="cpu"):
        self.images, self.labels = images.to(device), labels.to(device)

    def draw(self, n):
        return torch.randint(len(self.labels), (n,))  # ROOT

    def batch(self, n, device):
        rows = self.draw(n)  # ALSO
        x = self.images.index_select(0, rows).to(device)  # RAISE
        return x, self.labels.index_select(0, rows).to(device)

images, labels = torch.randn(16, 5), torch.randint(0, 3, (16,))
net = torch.nn.Linear(5, 3).to(dev)
for where in ("cpu", dev):
    x, y = Dataset(images, labels, where).batch(4, dev)
    torch.nn.functional.cross_entropy(net(x), y).backward()
