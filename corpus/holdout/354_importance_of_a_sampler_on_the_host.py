# source: https://github.com/pytorch/rl/issues/2518
# mechanism: a buffer samples rows of its storage on the GPU; the importance weights come in an info of the sampler, whose priorities are on the CPU
# phase: loss; aten::mul
# expect: raises
import torch

device = torch.device("cuda")


class PrioritizedSampler:
    def __init__(self, capacity, beta):
        self.beta, self.priorities = beta, torch.ones(capacity)

    def draw(self, count):
        chance = self.priorities / self.priorities.sum()
        index = chance.multinomial(count, replacement=True)
        weight = (len(chance) * chance[index]).pow(-self.beta)
        return index, {"_weight": weight / weight.max(), "index": index}


class Buffer:
    def __init__(self, capacity, sampler):
        self.sampler = sampler
        self.storage = {
            "state": torch.randn(capacity, 4, device=device),
            "reward": torch.randn(capacity, device=device),
            "next": torch.randn(capacity, 4, device=device),
        }

    def sample(self, count):
        index, info = self.sampler.draw(count)
        return {name: rows[index] for name, rows in self.storage.items()}, info


def temporal_difference(critic, batch):
    with torch.no_grad():
        goal = batch["reward"] + 0.9 * critic(batch["next"]).squeeze(-1)
    error = goal - critic(batch["state"]).squeeze(-1)
    return (batch["weight"] * error.square()).mean(), error.detach().abs()  # RAISE  # ALSO


buffer = Buffer(16, PrioritizedSampler(16, beta=0.4))
critic = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(critic.parameters())
for _ in range(3):
    batch, info = buffer.sample(6)
    batch["weight"] = info["_weight"]  # ROOT
    loss, error = temporal_difference(critic, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    buffer.sampler.priorities[info["index"]] = error.cpu() + 1e-3
