# source: LibreYOLO/libreyolo PR#304
# mechanism: [stale device attribute] the trainer moves the network that a user-facing wrapper holds, the wrapper's own device attribute stays what it was at construction
# phase: evaluation within training; failing op: aten::addmm
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F


class ReadingLevel:
    """What users call: keeps the network, its labels and where inputs go."""

    def __init__(self, names, device="cpu"):
        self.names = names
        self.device = torch.device(device)
        self.network = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, len(names)))
        self.network.to(self.device)

    @torch.no_grad()
    def grade(self, features):
        x = torch.as_tensor(features, dtype=torch.float32, device=self.device)  # ALSO
        scores = self.network(x)  # RAISE
        return [self.names[i] for i in scores.argmax(1).tolist()]


class Trainer:
    def __init__(self, wrapper, device):
        self.wrapper = wrapper
        self.network = wrapper.network
        self.wanted = device

    def setup(self):
        self.device = torch.device("cuda", 0) if self.wanted == "auto" else torch.device(self.wanted)
        self.network.to(self.device)  # ROOT
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-2)

    def epoch(self, batches):
        self.network.train()
        for x, y in batches:
            loss = F.cross_entropy(self.network(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def fit(self, batches, held_out, epochs=2):
        self.setup()
        history = []
        for _ in range(epochs):
            self.epoch(batches)
            self.network.eval()
            guesses = self.wrapper.grade(held_out["x"])
            history.append(sum(g == t for g, t in zip(guesses, held_out["names"])))
        return history


tool = ReadingLevel(["easy", "middle", "hard"])
train = [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(3)]
print(Trainer(tool, "auto").fit(train, {"x": torch.randn(2, 6).tolist(), "names": ["easy", "hard"]}))
