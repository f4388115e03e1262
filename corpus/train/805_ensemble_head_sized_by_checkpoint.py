# source: fideus-labs/KonfAI PR#26
# mechanism: [module never moved] model's own load() appends a head sized by the checkpoint; the framework's placement skips whatever stands below a part that is already placed
# phase: ensemble prediction; failing op: aten::conv2d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

def place(module, device):
    for child in module.children():
        if not getattr(child, "placed", False):  # ALSO
            child.to(device)
            child.placed = True


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(1, 4, 3, padding=1), nn.Sequential(nn.ReLU())

    def load(self, state):
        n = state["conv.weight"].shape[0]
        self.head.add_module("conv", nn.Conv2d(4, n, 1))  # ROOT
        self.head.load_state_dict(state)

    def forward(self, x):
        return self.head(self.body(x))  # RAISE


class Ensemble:
    def __init__(self, model, device):
        self.model, self.device = model, device
        place(model, device)

    def predict(self, x, states):
        for state in states:
            self.model.load(state)
            place(self.model, self.device)  # ALSO
            yield self.model(x).softmax(1)


states = [{"conv.weight": torch.randn(3, 4, 1, 1), "conv.bias": torch.zeros(3)}]
votes = list(Ensemble(Segmenter(), dev).predict(torch.randn(1, 1, 8, 8, device=dev), states))
