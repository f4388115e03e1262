# source: huggingface/transformers PR#41536 (a tensor is made on the device that a weight has at that time)
# mechanism: steps are made where the weight of an embedding rests; a hook brings that weight over when the embedding is called
# phase: generation; aten::index_select
# expect: raises
import torch
from torch import nn


class Melody(nn.Module):
    def __init__(self, pitches=48, longest=32, width=16):
        super().__init__()
        self.pitch = nn.Embedding(pitches, width)
        self.beat = nn.Embedding(longest, width)
        self.read = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, pitches)

    def forward(self, notes):
        beats = torch.arange(notes.shape[1], device=self.pitch.weight.device)  # ROOT
        sound = self.pitch(notes)
        sound = sound + self.beat(beats)  # RAISE
        states, _ = self.read(sound)
        return self.out(states[:, -1])


def load_when_used(model, device):
    def load(module, args):
        module.to(device)  # ALSO

    for part in model.children():
        part.register_forward_pre_hook(load)
    return model


@torch.no_grad()
def improvise(model, notes, length):
    for _ in range(length):
        notes = torch.cat([notes, model(notes).argmax(-1, keepdim=True)], dim=1)
    model.to("cpu")
    return notes


melody = load_when_used(Melody(), torch.device("cuda"))
opening = torch.randint(0, 48, (2, 5), device="cuda")
print(improvise(melody, opening, 4).tolist())
