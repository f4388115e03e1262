# source: pytorch/rl#2207
# mechanism: the prioritized draw produces indices on the host whereas the ends of trajectories are computed from a storage on the GPU, and the two are compared
# expect: raises
import torch


class TensorStorage:
    def __init__(self, capacity, device):
        self.capacity = capacity
        self.device = torch.device(device)
        self.fields = {}
        self.size = 0

    def extend(self, **fields):
        count = len(next(iter(fields.values())))
        for name, value in fields.items():
            if name not in self.fields:
                self.fields[name] = torch.zeros(self.capacity, *value.shape[1:], dtype=value.dtype, device=self.device)
            self.fields[name][self.size:self.size + count] = value.to(self.device)
        self.size += count
        return torch.arange(self.size - count, self.size)

    def get(self, index):
        return {name: value[index] for name, value in self.fields.items()}


class SumTree:
    def __init__(self, capacity):
        self.weights = torch.zeros(capacity)

    def set(self, index, value):
        self.weights[index] = value

    def draw(self, count):
        return torch.multinomial(self.weights, count, replacement=True)


class PrioritizedSliceSampler:
    def __init__(self, capacity, num_slices, traj_key="trajectory", alpha=0.7):
        self.tree = SumTree(capacity)
        self.num_slices = num_slices
        self.traj_key = traj_key
        self.alpha = alpha

    def mark(self, index, priority):
        self.tree.set(index, priority ** self.alpha)

    def stop_index(self, storage):
        trajectory = storage.fields[self.traj_key][: storage.size]
        boundary = trajectory[1:] != trajectory[:-1]
        end = torch.cat([boundary, boundary.new_ones(1)])
        return end.nonzero()[:, 0]  # ALSO

    def sample(self, storage, batch_size):
        length = batch_size // self.num_slices
        stop = self.stop_index(storage)  # ALSO
        index = self.tree.draw(self.num_slices)  # ALSO
        at_end = index.unsqueeze(0) == stop.unsqueeze(1)  # RAISE # ROOT
        start = index - at_end.any(0).long() * (length - 1)
        start = start.clamp(min=0, max=storage.size - length)
        return (start[:, None] + torch.arange(length, device=start.device)).flatten()


class ReplayBuffer:
    def __init__(self, storage, sampler, batch_size):
        self.storage = storage
        self.sampler = sampler
        self.batch_size = batch_size

    def extend(self, **fields):
        index = self.storage.extend(**fields)
        self.sampler.mark(index, torch.ones(len(index)))

    def sample(self):
        return self.storage.get(self.sampler.sample(self.storage, self.batch_size))


def main():
    torch.manual_seed(0)
    storage = TensorStorage(20, device="cuda")
    buffer = ReplayBuffer(storage, PrioritizedSliceSampler(20, num_slices=2), batch_size=6)
    buffer.extend(trajectory=torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2]), reward=torch.rand(10))
    for _ in range(3):
        batch = buffer.sample()
        print(batch["trajectory"].tolist(), round(batch["reward"].sum().item(), 3))


if __name__ == "__main__":
    main()
