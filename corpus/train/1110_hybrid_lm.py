# source: huggingface/transformers PR#30273
# mechanism: the window cache of every attention layer is made on the device of the first hidden states, and layers on the second device write their keys into it.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class LocalAttention(nn.Module):
    def __init__(self, dim, window):
        super().__init__()
        self.window = window
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.key_states = self.value_states = None

    def _setup_cache(self, batch, device, dtype):
        shape = (batch, self.window, self.q.in_features)
        self.key_states = torch.zeros(shape, dtype=dtype, device=device)
        self.value_states = torch.zeros(shape, dtype=dtype, device=device)

    def _update_cache(self, keys, values):
        old_k, old_v = self.key_states, self.value_states  # ROOT
        self.key_states = torch.cat([old_k, keys], dim=1)[:, -self.window :]  # RAISE
        self.value_states = torch.cat([old_v, values], dim=1)[:, -self.window :]
        return self.key_states, self.value_states

    def forward(self, x):
        keys, values = self._update_cache(self.k(x), self.v(x))
        return F.scaled_dot_product_attention(self.q(x), keys, values)


class RecurrentUnit(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.state = None

    def _setup_cache(self, batch, device, dtype):
        self.state = torch.zeros(batch, 1, self.gate.in_features, dtype=dtype, device=device)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        state = self.state.to(x.device)
        for step in range(x.shape[1]):
            state = gate[:, step : step + 1] * state + x[:, step : step + 1]
        self.state = state
        return gate * state


class HybridLM(nn.Module):
    def __init__(self, vocab=24, dim=16, window=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        kinds = [RecurrentUnit(dim), LocalAttention(dim, window), RecurrentUnit(dim), LocalAttention(dim, window)]
        self.layers = nn.ModuleList(kinds)
        self.head = nn.Linear(dim, vocab)

    def dispatch(self, first, second):
        half = len(self.layers) // 2
        self.embed.to(first)
        for i, layer in enumerate(self.layers):
            layer.to(first if i < half else second)
        self.head.to(second)
        return self

    def setup_cache(self, batch, device, dtype=torch.float32):
        for layer in self.layers:
            layer._setup_cache(batch, device, dtype)  # ALSO

    def forward(self, input_ids, reset=False):
        x = self.embed(input_ids)
        if reset:
            self.setup_cache(x.shape[0], x.device, x.dtype)
        for layer in self.layers:
            x = x.to(next(layer.parameters()).device)
            x = x + layer(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    model = HybridLM().dispatch("cuda:0", "cuda:1").eval()
    ids = torch.randint(0, 24, (2, 5), device="cuda:0")
    with torch.no_grad():
        logits = model(ids, reset=True)
        for _ in range(2):
            ids = logits[:, -1:].argmax(-1).to("cuda:0")
            logits = model(ids)
    print(ids.cpu().tolist())


if __name__ == "__main__":
    main()
