# source: none: a correct program
# mechanism: none; the default device is set first and holds throughout; lengths, priorities and entries of a dict on the CPU meet only each other
# phase: n/a
# expect: clean
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence


class Prioritized:
    def __init__(self, sequences):
        self.sequences = sequences
        self.lengths = torch.tensor([len(sequence) for sequence in sequences], device="cpu")
        self.priorities = torch.ones(len(sequences), device="cpu")

    def draw(self, count):
        index = self.priorities.multinomial(count)
        batch = {"words": pad_sequence([self.sequences[k] for k in index.tolist()], batch_first=True)}
        batch["seen"] = batch["words"] != 0
        batch["lengths"] = self.lengths[index]
        batch["index"] = index
        return batch

    def told(self, batch, losses):
        batch["losses"] = losses.detach().cpu()
        self.priorities[batch["index"]] = batch["losses"] / batch["lengths"] + 1e-3


class Reader(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed, self.read = torch.nn.Embedding(words, width), torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, words)
        self.decay = torch.linspace(1, 0.5, width)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words) * self.decay, lengths, batch_first=True, enforce_sorted=False)
        read = PackedSequence(self.read(packed.data).tanh(), *packed[1:])
        return self.out(pad_packed_sequence(read, batch_first=True)[0])


def main():
    torch.set_default_device("cuda")
    sequences = [torch.randint(1, 9, (length,)) for length in (3, 6, 4, 5, 2, 6)]
    data, model = Prioritized(sequences), Reader(words=9, width=5)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        batch = data.draw(3)
        logits = model(batch["words"], batch["lengths"])
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["words"], reduction="none")
        losses = (losses * batch["seen"]).sum(1)
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
        data.told(batch, losses)
    order = torch.randperm(len(sequences))
    assert torch.cat(sequences)[order].device.type == "cuda"
    assert data.priorities.isfinite().all()


main()
