# source: deepset-ai/FARM PR#200
# mechanism: [module never moved] heads are moved, then the one whose width does not fit the language model gets a new feed-forward block, built on the CPU
# phase: forward; failing op: aten::linear / addmm
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Head(nn.Module):
    def __init__(self, layer_dims):
        super().__init__()
        self.layer_dims = list(layer_dims)
        self.feed_forward = nn.Linear(*layer_dims)

    def resize_input(self, input_dim):
        if input_dim == self.layer_dims[0]:
            return
        self.layer_dims[0] = input_dim
        self.feed_forward = nn.Linear(*self.layer_dims)  # ROOT

    def forward(self, x):
        return self.feed_forward(x)  # RAISE

class AdaptiveModel(nn.Module):
    def __init__(self, language_model, prediction_heads, device):
        super().__init__()
        self.language_model = language_model.to(device)
        self.heads = nn.ModuleList([h.to(device) for h in prediction_heads])
        for h in self.heads:
            h.resize_input(language_model.out_features)  # ALSO

    def forward(self, x):
        h = self.language_model(x).tanh()
        return [head(h) for head in self.heads]

model = AdaptiveModel(nn.Linear(4, 6), [Head([6, 2]), Head([8, 3])], dev)
model(torch.randn(2, 4, device=dev))
