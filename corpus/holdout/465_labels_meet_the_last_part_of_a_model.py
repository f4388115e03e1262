# source: none; the shape of causal models of transformers that compute their loss where the last block is
# mechanism: a model lies on two GPUs and brings its hidden states over; the targets that come with the tokens stay where the tokens are
# phase: forward; aten::cross_entropy_loss
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
from torch.nn import functional as F

near, far = torch.device("cuda:0"), torch.device("cuda:1")


class Stage(nn.Module):
    def __init__(self, width, place):
        super().__init__()
        self.place = place
        self.mix = nn.Linear(width, width).to(place)

    def forward(self, states):
        return states + torch.tanh(self.mix(states.to(self.place)))


class Captioner(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width).to(near)
        self.lower, self.upper = Stage(width, near), Stage(width, far)
        self.vote = nn.Linear(width, words).to(far)

    def score(self, logits, caption):
        wanted = caption[:, 1:].reshape(-1)  # ROOT
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), wanted)  # RAISE  # ALSO

    def forward(self, caption):
        states = self.lower(self.words(caption))
        states = self.upper(states.to(far))
        return self.score(self.vote(states), caption)  # ALSO


captioner = Captioner(11, 6)
captions = torch.randint(0, 11, (3, 5)).to(near)
loss = captioner(captions)
loss.backward()
