# source: mtkresearch/FishLeg#16
# mechanism: a pruning mask captured by a gradient hook stays on the CPU; the hook runs on an autograd thread
# phase: backward; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


def keep_only(mask):
    def hook(grad):
        return grad * mask  # RAISE  # ALSO

    return hook


net = torch.nn.Linear(4, 2).to(dev)
mask = torch.ones(2, 4).tril()  # ROOT
net.weight.register_hook(keep_only(mask))  # ALSO
net(torch.randn(3, 4, device=dev)).sum().backward()
