# source: none; the shape of metrics of training frameworks that collect by a method for each batch
# mechanism: a method brings guesses to the host and keeps labels where they are; the end of the epoch compares the two
# phase: evaluation; aten::eq
# expect: raises
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Agreement:
    def __init__(self):
        self.said = []
        self.meant = []

    def update(self, scores, labels):
        self.said.append(scores.argmax(-1).cpu())  # ALSO
        self.meant.append(labels)  # ROOT

    def compute(self):
        said = torch.cat(self.said)
        meant = torch.cat(self.meant)  # ALSO
        return (said == meant).float().mean().item()  # RAISE


net = nn.Linear(4, 3).to(device)
agreement = Agreement()
with torch.no_grad():
    for _ in range(3):
        rows, labels = torch.randn(6, 4).to(device), torch.randint(0, 3, (6,)).to(device)
        agreement.update(net(rows), labels)
print(agreement.compute())
