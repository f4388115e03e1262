# source: https://github.com/thunlp/OpenPrompt/issues/160
# mechanism: the batches are moved to the GPU that the settings name, the model to the current one
# phase: forward; failing op: aten::embedding
# expect: raises
# needs: 2 GPUs
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class Settings:
    device: str = "cuda:1"
    width: int = 4
    words: int = 12


class Prompted(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.words = nn.Embedding(settings.words, settings.width)
        self.vote = nn.Linear(settings.width, 2)

    def forward(self, batch):
        return self.vote(self.words(batch["tokens"]).mean(1))  # RAISE


def evaluate(settings, batches):
    model = Prompted(settings)  # ALSO
    if torch.cuda.is_available():
        model = model.cuda()  # ROOT
    model.eval()
    right = 0
    for batch in batches:
        batch = {name: part.to(settings.device) for name, part in batch.items()}
        with torch.no_grad():
            right += (model(batch).argmax(-1) == batch["label"]).sum().item()
    return right


batches = [{"tokens": torch.randint(0, 12, (3, 5)), "label": torch.randint(0, 2, (3,))} for _ in range(2)]
print(evaluate(Settings(), batches))
