# source: none: a correct program
# mechanism: none; what the programs beside this one should have done
# phase: n/a
# expect: clean
import torch

dev = torch.device("cuda", 0)


class Attention(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        self.register_buffer("allowed", torch.ones(length, length, dtype=torch.bool).tril(), persistent=False)
        self.mix = torch.nn.Linear(4, 4)

    def forward(self, x):
        scores = self.mix(x) @ x.transpose(-1, -2)
        positions = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)
        return scores.masked_fill(~self.allowed, float("-inf")).softmax(-1) @ x + positions.view(-1, 1)


net = Attention(3).to(dev)
criterion = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 1.0])).to(dev)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for _ in range(3):
    optimizer.zero_grad()
    loss = criterion(net(torch.randn(2, 3, 4, device=dev)).mean(1), torch.tensor([1, 3], device=dev))
    loss.backward()
    optimizer.step()
assert loss.isfinite().item()
