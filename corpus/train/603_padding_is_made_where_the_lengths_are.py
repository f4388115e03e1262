# source: OpenNMT/OpenNMT-py#1494 (a mask is to be on the device of the lengths)
# mechanism: masks are made on the device of the lengths that they are for; one caller's lengths stay on the host
# phase: pooling; aten::mul
# expect: raises
import torch
from torch import nn


def frames_mask(lengths, longest):
    steps = torch.arange(longest, device=lengths.device)
    return (steps < lengths.unsqueeze(1)).float()


def pooled(states, lengths):
    mask = frames_mask(lengths, states.shape[1]).unsqueeze(-1)  # ALSO
    return (states * mask).sum(1) / lengths.unsqueeze(1).to(states.device)  # RAISE  # ALSO


class Utterances:
    def __init__(self, clips):
        self.clips = clips

    def counts(self):
        return torch.tensor([len(clip) for clip in self.clips])

    def padded(self):
        return nn.utils.rnn.pad_sequence(self.clips, batch_first=True)


clips = Utterances([torch.randn(n, 3) for n in (5, 2, 4)])
net = nn.Linear(3, 6).to("cuda")
states = net(clips.padded().to("cuda"))
pooled(states, clips.counts().to("cuda"))
lengths = clips.counts()  # ROOT
pooled(states, lengths)  # ALSO
