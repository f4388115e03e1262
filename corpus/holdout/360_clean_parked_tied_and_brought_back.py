# source: none: a correct program
# mechanism: none; a tied model on one GPU, a critic on another, and rows and optimizer states that wait on the CPU and are brought back
# phase: n/a
# expect: clean
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class Tied(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed, self.mix = torch.nn.Embedding(words, width), torch.nn.Linear(width, width)
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight
        self.offset = None

    def forward(self, tokens):
        hidden = self.mix(self.embed(tokens)).tanh()
        return self.head(hidden), hidden


class Kept:
    def __init__(self):
        self.rows = []

    def put(self, hidden, tokens):
        self.rows.append({"hidden": hidden.detach().cpu(), "tokens": tokens.cpu()})

    def take(self, name, device):
        return torch.cat([row[name] for row in self.rows]).to(device)


def park(optimizer):
    for state in optimizer.state.values():
        state["exp_avg"], state["exp_avg_sq"] = state["exp_avg"].cpu(), state["exp_avg_sq"].cpu()


def bring_back(optimizer):
    for parameter, state in optimizer.state.items():
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = state[name].to(parameter.device)


model = Tied(words=9, width=4)
model.embed.to(second)
model.to(first)
model.offset = model.embed.weight.detach().mean(0)
critic = torch.nn.Linear(4, 1).to(second)
optimizer = torch.optim.AdamW([*model.parameters(), *critic.parameters()])
kept = Kept()
for _ in range(3):
    tokens = torch.randint(0, 9, (2, 5), device=first)
    logits, hidden = model(tokens)
    kept.put(hidden - model.offset, tokens)
    recalled = kept.take("hidden", second)
    value = critic(torch.cat([recalled, hidden.to(second)])).mean().to(first)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) + value
    optimizer.zero_grad()
    loss.backward()
    bring_back(optimizer)
    optimizer.step()
    park(optimizer)
assert kept.take("tokens", "cpu").shape == (6, 5)
