# source: codebooks that are a plain list or dictionary, in a codec that is evaluated on the CPU
# mechanism: templates made on the accelerator in a plain dictionary stay when the reader goes to the CPU to be tested
# phase: test on the host; failing op: aten::dot
# expect: raises
import torch
from torch import nn


class Stamps(nn.Module):
    def __init__(self, letters, size, device):
        super().__init__()
        self.forms = {letter: torch.rand(size, device=device) for letter in letters}  # ROOT

    def forward(self, ink):
        likeness = {}
        for letter, form in self.forms.items():
            likeness[letter] = torch.dot(ink, form)  # RAISE  # ALSO
        return max(likeness, key=likeness.get)


class Reader(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.blotter = nn.Linear(9, 4, device=device)
        self.stamps = Stamps("abc", 4, device)

    @torch.no_grad()
    def forward(self, page):
        return self.stamps(self.blotter(page))


reader = Reader("cuda:0")
reader(torch.rand(9, device="cuda:0"))
reader.to("cpu")
reader(torch.rand(9))
