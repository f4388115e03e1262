# source: jacobgil/pytorch-grad-cam#340 (BaseCAM.__init__ has model.cuda(); the thread's fix gives it a device)
# mechanism: [wrapper moves the model] a tool for heat maps calls .cuda() on the model that is handed to it, and so takes it from the second GPU to the first
# phase: evaluation in a training loop; failing op: aten::conv2d
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F


class HeatProbe:
    def __init__(self, net, layer, gpu=False):
        self.net = net.eval()
        if gpu:
            self.net = net.cuda()  # ROOT
        self.acts = []
        self.handle = layer.register_forward_hook(lambda mod, args, out: self.acts.append(out))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.handle.remove()

    @torch.no_grad()
    def __call__(self, batch):
        self.acts.clear()
        self.net(batch)
        return self.acts[0].mean(dim=1)


class XrayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, padding=1)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        x = self.stem(x).relu()  # RAISE
        return self.head(x.mean(dim=(2, 3)))


def train(rank, rounds=2):
    device = torch.device("cuda", rank)
    net = XrayNet().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(rounds):
        xray, sick = torch.rand(4, 1, 8, 8, device=device), torch.randint(0, 2, (4,), device=device)
        loss = F.cross_entropy(net.train()(xray), sick)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with HeatProbe(net, net.stem, gpu=torch.cuda.is_available()) as probe:  # ALSO
            print(probe(xray).amax().item())


train(rank=1)
