# source: jacobgil/pytorch-grad-cam#455
# mechanism: hooks keep activations on the CPU, and a method that weights the input with them multiplies it on the GPU with what they kept
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class ActivationsAndGradients:
    def __init__(self, model, target_layers):
        self.model = model
        self.activations, self.gradients = [], []
        self.handles = []
        for layer in target_layers:
            self.handles.append(layer.register_forward_hook(self.save_activation))

    def save_activation(self, module, inputs, output):
        self.activations.append(output.detach().cpu())
        if output.requires_grad:
            output.register_hook(lambda grad: self.gradients.insert(0, grad.detach().cpu()))

    def __call__(self, x):
        self.activations, self.gradients = [], []
        return self.model(x)

    def release(self):
        for handle in self.handles:
            handle.remove()


class BaseCAM:
    uses_gradients = True

    def __init__(self, model, target_layers):
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.recorder = ActivationsAndGradients(model, target_layers)

    def get_cam_weights(self, input_tensor, targets, activations, gradients):
        raise NotImplementedError

    def __call__(self, input_tensor, targets):
        input_tensor = input_tensor.to(self.device)
        outputs = self.recorder(input_tensor)
        if self.uses_gradients:
            self.model.zero_grad()
            sum(o[t] for o, t in zip(outputs, targets)).backward()
        activations = self.recorder.activations[-1]
        gradients = self.recorder.gradients[-1] if self.uses_gradients else None
        weights = self.get_cam_weights(input_tensor, targets, activations, gradients)
        cam = (weights[:, :, None, None] * activations).sum(1).relu()
        cam = cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-7)
        return F.interpolate(cam[:, None], size=input_tensor.shape[-2:], mode="bilinear")[:, 0]


class GradCAM(BaseCAM):
    def get_cam_weights(self, input_tensor, targets, activations, gradients):
        return gradients.mean((2, 3))


class ScoreCAM(BaseCAM):
    uses_gradients = False
    batch_size = 4

    def get_cam_weights(self, input_tensor, targets, activations, gradients):
        with torch.no_grad():
            upsampled = F.interpolate(activations, size=input_tensor.shape[-2:], mode="bilinear")  # ROOT
            low = upsampled.amin((2, 3), keepdim=True)
            high = upsampled.amax((2, 3), keepdim=True)
            upsampled = (upsampled - low) / (high - low + 1e-8)  # ALSO
            masked = input_tensor[:, None] * upsampled[:, :, None]  # RAISE # ALSO
            scores = []
            for target, tensor in zip(targets, masked):
                for batch in tensor.split(self.batch_size):
                    scores += self.model(batch)[:, target].tolist()
        return torch.tensor(scores).view(activations.shape[:2]).softmax(-1)


class SmallNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(6, 8, 3, padding=1), nn.ReLU())
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def explain(method, model, images, targets):
    cam = method(model, [model.layer2])
    try:
        return cam(images, targets)
    finally:
        cam.recorder.release()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = SmallNet().to(device)
    images = torch.rand(2, 3, 12, 12)
    for method in (GradCAM, ScoreCAM):
        maps = explain(method, model, images, [1, 3])
        print(method.__name__, tuple(maps.shape), round(maps.mean().item(), 4))


if __name__ == "__main__":
    main()
