# source: DeepRLChinese/DeepRL-Chinese#4 and many like it: observations go to the network as the environment gives them
# mechanism: images come from NumPy on the CPU, the network's convolution is on CUDA; the check is the convolution's own
# phase: forward; aten::conv2d
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, images):
        return self.head(self.conv(images).relu().flatten(1))  # RAISE  # ALSO


def observe():
    return torch.linspace(0, 1, 16).view(1, 1, 4, 4)  # ALSO


Network().to(dev)(observe())  # ROOT
