# source: ant-research/EasyTemporalPointProcess#40
# mechanism: the combined attention mask of event and layer positions is joined from the batch's mask and an identity made without a device
# expect: raises
import torch
from torch import nn


class TimeEncoding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("div", torch.exp(torch.arange(0, dim, 2).float() * -0.3))

    def forward(self, times):
        angles = times.unsqueeze(-1) * self.div
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class EventAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)

    def forward(self, x, memory, mask):
        scores = self.q(x) @ self.k(memory).transpose(1, 2)
        scores = scores.masked_fill(mask, -1e9)
        return scores.softmax(-1) @ self.v(memory)


class AttentiveProcess(nn.Module):
    def __init__(self, num_types, dim=8, layers=2):
        super().__init__()
        self.types = nn.Embedding(num_types + 1, dim, padding_idx=num_types)
        self.time = TimeEncoding(dim)
        self.layers = nn.ModuleList([EventAttention(dim) for _ in range(layers)])
        self.intensity = nn.Linear(dim, num_types)

    def join_masks(self, attention_mask):
        batch, length, _ = attention_mask.shape
        own = 1 - torch.eye(length)  # ROOT
        own = own.bool().expand(batch, -1, -1)  # ALSO
        return torch.cat([attention_mask, own], dim=-1)  # RAISE # ALSO

    def forward(self, times, types, attention_mask):
        events = self.types(types) + self.time(times)
        current = self.time(times)
        mask = self.join_masks(attention_mask)
        for layer in self.layers:
            memory = torch.cat([events, current], dim=1)
            current = current + layer(current, memory, mask)
        return nn.functional.softplus(self.intensity(current))


def make_batch(num_types, batch=3, length=5):
    times = torch.rand(batch, length).cumsum(1)
    types = torch.randint(0, num_types, (batch, length))
    mask = torch.triu(torch.ones(length, length), diagonal=0).bool().expand(batch, -1, -1)
    return times, types, mask


def log_likelihood(intensity, types):
    chosen = intensity.gather(-1, types.unsqueeze(-1)).squeeze(-1)
    return (chosen.log() - intensity.sum(-1)).mean()


def train(model, device, steps=2, num_types=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        times, types, mask = (t.to(device) for t in make_batch(num_types))
        loss = -log_likelihood(model(times, types, mask), types)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = AttentiveProcess(4).to(device)
    print("loss", train(model, device))
