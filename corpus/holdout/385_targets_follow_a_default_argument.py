# source: huggingface/pytorch-image-models PR#913
# mechanism: a helper's device is "cuda" unless it is given, and nobody gives it where batches are mixed on the CPU
# phase: data; aten::scatter_
# expect: raises
import torch
from torch import nn


def spread(labels, classes, smooth, device):
    made = torch.full((len(labels), classes), smooth / classes, device=device)  # ALSO
    return made.scatter_(1, labels[:, None], 1 - smooth)  # RAISE


def soft_targets(labels, classes, smooth=0.1, device="cuda"):  # ALSO
    return spread(labels, classes, smooth, device)  # ALSO


class Mixer:
    def __init__(self, classes):
        self.classes = classes

    def __call__(self, images, labels):
        flipped = images.flip(0)
        targets = soft_targets(labels, self.classes)  # ROOT
        return 0.5 * images + 0.5 * flipped, targets


model = nn.Linear(6, 3)
mixed, targets = Mixer(3)(torch.rand(4, 6), torch.tensor([0, 2, 1, 1]))
print((model(mixed).softmax(1) - targets).abs().sum())
