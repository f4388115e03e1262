# source: https://github.com/zhang-can/CoLA/issues/10
# mechanism: one generator is made on the GPU for a whole run and given to a sampler, which draws on the host
# phase: first batch; failing op: aten::multinomial
# expect: raises
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


class Run:
    def __init__(self, seed, device):
        self.device = torch.device(device)
        self.dice = torch.Generator(device=self.device)  # ROOT
        self.dice.manual_seed(seed)
        self.net = torch.nn.Linear(4, 3).to(self.device)

    def loader(self, inputs, labels, size):
        frequency = torch.bincount(labels, minlength=3).clamp(min=1)
        weights = 1.0 / frequency[labels].double()
        sampler = WeightedRandomSampler(weights, len(labels), generator=self.dice)  # ALSO
        return DataLoader(TensorDataset(inputs, labels), batch_size=size, sampler=sampler)

    def fit(self, inputs, labels):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for rows, wanted in self.loader(inputs, labels, 4):  # RAISE
            guess = self.net(rows.to(self.device))
            loss = torch.nn.functional.cross_entropy(guess, wanted.to(self.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


Run(7, "cuda").fit(torch.randn(12, 4), torch.randint(0, 3, (12,)))
