# source: sacdallago/biotrainer#67
# mechanism: class weights are computed from the label counts on the host and handed to the loss without going to the training device
# expect: raises
from collections import Counter

import torch
from torch import nn

PAD = -100


class TargetManager:
    def __init__(self, sequences):
        self.sequences = sequences
        self.classes = sorted({c for _, tags in sequences for c in tags})
        self.class_to_index = {c: i for i, c in enumerate(self.classes)}

    def compute_class_weights(self):
        counts = Counter(c for _, tags in self.sequences for c in tags)
        total = sum(counts.values())
        weights = [total / (len(self.classes) * counts[c]) for c in self.classes]
        return torch.tensor(weights)  # ALSO

    def encode(self, tags, width):
        return [self.class_to_index[c] for c in tags] + [PAD] * (width - len(tags))


def get_loss(choice, weight=None):
    losses = {"cross_entropy_loss": lambda: nn.CrossEntropyLoss(weight=weight, ignore_index=PAD)}  # ALSO
    return losses[choice]()  # ALSO


class ResidueCNN(nn.Module):
    def __init__(self, alphabet, classes, width=12):
        super().__init__()
        self.embed = nn.Embedding(alphabet + 1, width, padding_idx=0)
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Linear(width, classes)

    def forward(self, tokens):
        hidden = self.embed(tokens).transpose(1, 2)
        return self.out(torch.relu(self.conv(hidden)).transpose(1, 2))


class Solver:
    def __init__(self, network, optimizer, loss_function, device):
        self.network = network
        self.optimizer = optimizer
        self.loss_function = loss_function  # ALSO
        self.device = device

    def iterate(self, tokens, targets):
        scores = self.network(tokens.to(self.device))
        loss = self.loss_function(scores.flatten(0, 1), targets.to(self.device).flatten())  # RAISE
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def batch(manager, alphabet="ACDEFGHIK"):
    width = max(len(s) for s, _ in manager.sequences)
    tokens = [[alphabet.index(r) + 1 for r in s] + [0] * (width - len(s)) for s, _ in manager.sequences]
    targets = [manager.encode(tags, width) for _, tags in manager.sequences]
    return torch.tensor(tokens), torch.tensor(targets)


def train(config, sequences):
    device = torch.device(config["device"])
    manager = TargetManager(sequences)
    class_weights = None
    if config["use_class_weights"]:
        class_weights = manager.compute_class_weights()  # ALSO
    network = ResidueCNN(9, len(manager.classes)).to(device)
    loss_function = get_loss(config["loss"], weight=class_weights)  # ROOT
    solver = Solver(network, torch.optim.Adam(network.parameters(), lr=config["lr"]), loss_function, device)  # ALSO
    return [solver.iterate(*batch(manager)) for _ in range(config["epochs"])]


if __name__ == "__main__":
    torch.manual_seed(0)
    data = [("ACDEF", "HHECC"), ("GHIK", "CCCC"), ("AAGHIKC", "HHHCCEC")]
    settings = {"device": "cuda", "use_class_weights": True, "loss": "cross_entropy_loss", "lr": 0.01, "epochs": 3}
    print(train(settings, data))
