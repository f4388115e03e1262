# source: mzemlyanikin/binary-nets#1
# mechanism: the first forward, on the CPU, keeps a copy of a weight as an attribute of the parameter; no move finds it
# phase: forward; aten::conv1d
# expect: raises
import torch

dev = torch.device("cuda", 0)


class BinaryConv(torch.nn.Conv1d):
    def forward(self, x):
        if not hasattr(self.weight, "original"):  # ALSO
            self.weight.original = self.weight.data.clone()  # ROOT
        scale = self.weight.original.abs().mean(dim=(1, 2), keepdim=True)
        return torch.nn.functional.conv1d(x, self.weight.original.sign() * scale, padding=self.padding)  # RAISE


class Keywords(torch.nn.Module):
    def __init__(self, channels, words):
        super().__init__()
        self.convs = torch.nn.Sequential(
            BinaryConv(1, channels, 3, padding=1), torch.nn.ReLU(), BinaryConv(channels, channels, 3, padding=1)
        )
        self.words = torch.nn.Linear(channels, words)

    def forward(self, sound):
        return self.words(self.convs(sound).mean(-1))


def count_outputs(model, length):
    with torch.no_grad():
        return model(torch.zeros(1, 1, length)).shape[1]


model = Keywords(channels=4, words=3)
labels = torch.arange(count_outputs(model, length=16))
model.to(dev)
model(torch.randn(2, 1, 16, device=dev))
