# source: jacobgil/pytorch-grad-cam#545
# mechanism: a target object keeps the region mask that its caller made on the host and multiplies a model output on the GPU with it
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class ClassifierOutputTarget:
    def __init__(self, category):
        self.category = category

    def __call__(self, model_output):
        return model_output[self.category].mean()


class SemanticSegmentationTarget:
    def __init__(self, category, mask):
        self.category = category
        self.mask = mask.float()

    def __call__(self, model_output):
        return (model_output[self.category, :, :] * self.mask).sum()  # RAISE # ROOT


class SegmentationNet(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU())
        self.classifier = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        return F.interpolate(self.classifier(self.backbone(x)), size=x.shape[-2:], mode="bilinear")


class GradCAM:
    def __init__(self, model, target_layer):
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.saved = {}
        self.handle = target_layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        output.retain_grad()
        self.saved["activation"] = output

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.handle.remove()

    def __call__(self, input_tensor, targets):
        input_tensor = input_tensor.to(self.device)
        outputs = self.model(input_tensor)
        loss = sum(target(output) for target, output in zip(targets, outputs))
        self.model.zero_grad()
        loss.backward()
        activation = self.saved["activation"]
        weights = activation.grad.mean((2, 3), keepdim=True)
        cam = (weights * activation).sum(1).relu().detach()
        cam = cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-7)
        return F.interpolate(cam[:, None], size=input_tensor.shape[-2:])[:, 0].cpu()


def overlay(image, cam, weight=0.5):
    heat = torch.stack([cam, 1 - cam, torch.zeros_like(cam)])
    return (1 - heat) * weight + image * (1 - weight)


@torch.no_grad()
def predict_labels(model, images, device):
    model.eval()
    logits = model(images.to(device))
    return logits.argmax(1).cpu()


def largest_category(labels, classes):
    return int(torch.bincount(labels.flatten(), minlength=classes).argmax())


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = SegmentationNet().to(device)
    images = torch.rand(2, 3, 16, 16)
    labels = predict_labels(model, images, device)
    categories = [largest_category(label, 3) for label in labels]
    masks = [label == category for label, category in zip(labels, categories)]  # ALSO
    whole = [ClassifierOutputTarget(category) for category in categories]
    regions = [SemanticSegmentationTarget(category, mask) for category, mask in zip(categories, masks)]  # ALSO
    with GradCAM(model, model.backbone) as cam:
        for name, targets in (("whole", whole), ("regions", regions)):
            maps = cam(images, targets)
            pictures = [overlay(image, m) for image, m in zip(images, maps)]
            print(name, [round(p.mean().item(), 4) for p in pictures])
    for mask in masks:
        print("covered", round(mask.float().mean().item(), 3))


if __name__ == "__main__":
    main()
