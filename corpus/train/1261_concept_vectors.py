# source: meta-pytorch/captum#721
# mechanism: concept vectors are loaded from disk on the CPU and multiplied with layer gradients of a model on the GPU
# expect: raises
import os
import tempfile

import torch
from torch import nn


class ImageNet10(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.pool = nn.AdaptiveAvgPool2d((2, 2))
        self.classifier = nn.Linear(24, 4)

    def features(self, images):
        return self.pool(torch.relu(self.conv(images)))

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


class CAV:
    def __init__(self, name, weights):
        self.name, self.weights = name, weights

    @staticmethod
    def path(folder, name):
        return os.path.join(folder, f"{name}.pt")

    def save(self, folder):
        torch.save({"name": self.name, "weights": self.weights.cpu()}, self.path(folder, self.name))

    @classmethod
    def load(cls, folder, name):
        state = torch.load(cls.path(folder, name), map_location="cpu")
        return cls(state["name"], state["weights"])


class TCAV:
    def __init__(self, model, folder):
        self.model, self.folder = model, folder

    def compute_cavs(self, concepts):
        for name, images in concepts.items():
            device = next(self.model.parameters()).device
            with torch.no_grad():
                positive = self.model.features(images.to(device)).flatten(1)
                noise = self.model.features(torch.randn(images.shape, device=device)).flatten(1)
            CAV(name, nn.functional.normalize(positive.mean(0) - noise.mean(0), dim=0)).save(self.folder)

    def layer_gradients(self, inputs, target):
        acts = self.model.features(inputs).detach().requires_grad_()
        out = self.model.classifier(acts.flatten(1))[:, target].sum()
        return torch.autograd.grad(out, acts)[0].flatten(1)

    def load_cavs(self, names):
        return torch.stack([CAV.load(self.folder, n).weights for n in names])  # ALSO

    def interpret(self, inputs, names, target):
        grads = self.layer_gradients(inputs, target)
        cavs = self.load_cavs(names)  # ROOT
        return self._tcav_score(grads, cavs, names)

    def _tcav_score(self, grads, cavs, names):
        sensitivity = torch.matmul(grads, cavs.t())  # RAISE # ALSO
        sign = (sensitivity > 0).float().mean(0)
        return dict(zip(names, sign.tolist()))


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ImageNet10().to(device).eval()
    concepts = {"striped": torch.rand(4, 3, 8, 8), "dotted": torch.rand(4, 3, 8, 8)}
    with tempfile.TemporaryDirectory() as folder:
        tcav = TCAV(model, folder)
        tcav.compute_cavs(concepts)
        images = torch.randn(3, 3, 8, 8).to(device)
        print(tcav.interpret(images, list(concepts), target=2))


if __name__ == "__main__":
    main()
