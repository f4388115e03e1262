# source: Comfy-Org/ComfyUI#16409 (review thread: probabilities = scores.softmax(-1).to(rng_device) became top_vals.softmax(-1), the generator is still on rng_device)
# mechanism: numbers are drawn by a generator of the host; one branch takes the weights to it, the truncated one does not
# phase: sampling; aten::multinomial
# expect: raises
import torch
from torch import nn


class Sampler:
    def __init__(self, seed, truncate=None):
        self.rng = torch.Generator().manual_seed(seed)
        self.truncate = truncate

    def weights_of(self, scores):
        if self.truncate is None:
            weights = torch.softmax(scores, dim=-1).to(self.rng.device)
        else:
            best = scores.topk(self.truncate).values  # ALSO
            weights = torch.softmax(best, dim=-1)  # ROOT
        return weights  # ALSO

    def __call__(self, scores):
        weights = self.weights_of(scores)  # ALSO
        return torch.multinomial(weights, 1, generator=self.rng).to(scores.device)  # RAISE  # ALSO


net = nn.Linear(6, 20).to("cuda")
state = torch.randn(3, 6, device="cuda")
Sampler(3)(net(state))
Sampler(3, truncate=5)(net(state))
