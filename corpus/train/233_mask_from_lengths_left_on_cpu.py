# source: NVIDIA/flowtron#86
# mechanism: lengths stay on the CPU, where packing wants them, and so does the padding mask made from them
# phase: loss; aten::mul
# expect: raises
import torch
from torch.nn.utils.rnn import pad_sequence

dev = torch.device("cuda", 0)


def collate(samples):
    frames, targets = zip(*samples)
    lengths = torch.tensor([len(frame) for frame in frames])
    return pad_sequence(frames, batch_first=True), pad_sequence(targets, batch_first=True), lengths


def padding_mask(lengths, longest):
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


class Vocoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def forward(self, frames):
        return self.net(frames).squeeze(-1)


def masked_error(predicted, targets, lengths):
    mask = padding_mask(lengths, predicted.shape[1])  # ALSO
    error = (predicted - targets).pow(2) * mask  # RAISE  # ALSO
    return error.sum() / mask.sum()


dataset = [(torch.randn(n, 3), torch.randn(n)) for n in (5, 3, 6, 2)]
loader = torch.utils.data.DataLoader(dataset, batch_size=2, collate_fn=collate)
model = Vocoder().to(dev)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for frames, targets, lengths in loader:
    loss = masked_error(model(frames.to(dev)), targets.to(dev), lengths)  # ROOT
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
