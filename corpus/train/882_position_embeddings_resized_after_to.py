# source: huggingface/transformers PR#13593 (Correct device when resizing position embeddings)
# mechanism: [module never moved] a resize method replaces a submodule by a new one after the model was moved; the new one is registered, but stays on the CPU
# phase: forward; failing op: aten::add
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Positions(nn.Embedding):
    def __init__(self, size, dim):
        super().__init__(size, dim)
        self.weight.requires_grad_(False)

    def forward(self, length):
        return super().forward(torch.arange(length, device=self.weight.device))

class Encoder(nn.Module):
    def __init__(self, size=8, dim=4):
        super().__init__()
        self.dim = dim
        self.embed_tokens = nn.Embedding(20, dim)
        self.embed_positions = Positions(size, dim)
        self.layer = nn.Linear(dim, dim)

    def resize_position_embeddings(self, size):
        self.embed_positions = Positions(size, self.dim)  # ROOT

    def forward(self, ids):
        hidden = self.embed_tokens(ids) + self.embed_positions(ids.shape[1])  # RAISE
        return self.layer(hidden)

encoder = Encoder().to(dev)
encoder(torch.zeros(2, 8, dtype=torch.long, device=dev))
encoder.resize_position_embeddings(12)
encoder(torch.zeros(2, 12, dtype=torch.long, device=dev))
