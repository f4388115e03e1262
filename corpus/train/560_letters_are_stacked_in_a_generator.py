# source: none; what is taken out of a store is stacked inside of a generator, and two of three operands come from there
# mechanism: an archive keeps letters on the host, and hands out stacks of them as they are
# phase: forward; failing op: aten::cat
# expect: raises
import torch
from torch import nn


class Archive:
    def __init__(self):
        self.letters = {}

    def keep(self, number, *pages):
        self.letters[number] = tuple(page.detach().cpu() for page in pages)

    def take(self, *numbers):
        chosen = [self.letters[number] for number in numbers]
        return [torch.stack(pages) for pages in zip(*chosen)]  # ROOT


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.sign = nn.Parameter(torch.zeros(1, 2))

    def forward(self, first, second):
        return torch.cat((first, second, self.sign), dim=0).sum()  # RAISE


archive = Archive()
reader = Reader().cuda()
for number in range(3):
    archive.keep(number, torch.randn(2).cuda(), torch.randn(2).cuda())
first, second = archive.take(0, 2)  # ALSO
print(reader(first, second))  # ALSO
