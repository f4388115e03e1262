# source: none; the shape of loops that tell listeners of each batch
# mechanism: a helper moves the batch for the loop, which gives its listeners the one that it got
# phase: evaluation; aten::eq
# expect: raises
import torch
from torch import nn


def place(value, device):
    if isinstance(value, (list, tuple)):
        return type(value)(place(one, device) for one in value)
    return value.to(device)


class Accuracy:
    def __init__(self):
        self.right = 0

    def batch_ended(self, batch, scores):
        _, labels = batch  # ALSO
        self.right += int((scores.argmax(1) == labels).sum())  # RAISE  # ALSO


class Evaluator:
    def __init__(self, model, listeners, device="cuda"):
        self.device = torch.device(device)
        self.model, self.listeners = model.to(self.device).eval(), listeners

    def tell(self, what, *values):
        for listener in self.listeners:
            getattr(listener, what)(*values)

    @torch.inference_mode()
    def run(self, batches):
        for batch in batches:
            placed = place(batch, self.device)  # ALSO
            scores = self.model(placed[0])
            self.tell("batch_ended", batch, scores)  # ROOT


batches = [(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(2)]
Evaluator(nn.Linear(3, 2), [Accuracy()]).run(batches)
