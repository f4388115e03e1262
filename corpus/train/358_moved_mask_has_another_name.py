# source: a variation of https://github.com/kitzeslab/opensoundscape/pull/201
# mechanism: a mask is moved and the copy has a name of its own; the model is called with the mask that came from the loader
# phase: evaluation; aten::masked_fill
# expect: raises
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")


class Pooling(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = torch.nn.Linear(width, 1)

    def forward(self, frames, silent):
        scores = self.score(frames).squeeze(-1)
        scores = scores.masked_fill(silent, -1e4)  # RAISE
        return (scores.softmax(-1)[..., None] * frames).sum(1)


class Classifier(torch.nn.Module):
    def __init__(self, bands, width, classes):
        super().__init__()
        self.frames, self.pool = torch.nn.Linear(bands, width), Pooling(width)
        self.out = torch.nn.Linear(width, classes)

    def forward(self, clips, silent):
        return self.out(self.pool(self.frames(clips).relu(), silent))


@torch.no_grad()
def predict(model, loader):
    model.eval()
    classes, loud = [], torch.zeros((), device=device)
    for clips, silent in loader:
        silent_dev = silent.to(device, non_blocking=True)  # ALSO
        loud += (~silent_dev).float().mean()
        clips = clips.to(device, non_blocking=True)
        classes.append(model(clips, silent).argmax(-1))  # ROOT
    return torch.cat(classes).cpu(), loud.item() / len(loader)


clips = torch.randn(8, 10, 5)
data = TensorDataset(clips, clips.abs().mean(-1) < 0.5)
model = Classifier(bands=5, width=6, classes=3).to(device)
print(predict(model, DataLoader(data, batch_size=4, pin_memory=True)))
