# source: none: a correct program
# mechanism: none; a pinned loader with a CPU generator, nested batches moved whole, lengths kept for packing
# phase: n/a
# expect: clean
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

dev = torch.device("cuda", 0)


def collate(samples):
    frames, targets = zip(*samples)
    lengths = torch.tensor([len(frame) for frame in frames])
    scores = [{"score": target} for target in targets]
    return {"frames": pad_sequence(frames, batch_first=True), "lengths": lengths, "targets": scores}


def move(value, device):
    if torch.is_tensor(value):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {name: move(part, device) for name, part in value.items()}
    return [move(part, device) for part in value]


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frame, self.score = torch.nn.Linear(3, 8), torch.nn.Linear(8, 1)

    def forward(self, frames, lengths):
        packed = pack_padded_sequence(frames, lengths, batch_first=True, enforce_sorted=False)
        packed = packed._replace(data=self.frame(packed.data).tanh())
        hidden, _ = pad_packed_sequence(packed, batch_first=True)
        mask = torch.arange(hidden.shape[1]) < lengths.unsqueeze(1)
        mask = mask.to(hidden.device).unsqueeze(-1)
        return self.score((hidden * mask).sum(1) / mask.sum(1)).squeeze(-1)


dataset = [(torch.randn(n, 3), torch.tensor(float(n))) for n in (5, 3, 6, 2)]
shuffled = torch.Generator().manual_seed(0)
loader = torch.utils.data.DataLoader(
    dataset, batch_size=2, shuffle=True, generator=shuffled, collate_fn=collate, pin_memory=True
)
model = Scorer().to(dev)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in loader:
    lengths = batch.pop("lengths")
    batch = move(batch, dev)
    wanted = torch.stack([target["score"] for target in batch["targets"]])
    loss = torch.nn.functional.mse_loss(model(batch["frames"], lengths), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
