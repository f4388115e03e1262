# source: open-mmlab/mmrotate#638
# mechanism: an equivariant layer expands its filter when eval() is called and keeps it as a plain tensor, before the model is moved to the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class EquivariantConv(nn.Module):
    def __init__(self, in_fields, out_fields, kernel_size=3, rotations=4, stride=1):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_fields, in_fields, kernel_size, kernel_size) * 0.1)
        self.bias = nn.Parameter(torch.zeros(out_fields))
        self.rotations = rotations
        self.stride = stride
        self.padding = kernel_size // 2

    def expand_parameters(self):
        turned = [torch.rot90(self.weight, k, (2, 3)) for k in range(self.rotations)]
        weight = torch.stack(turned, dim=1).flatten(0, 1)
        return weight, self.bias.repeat_interleave(self.rotations)

    def train(self, mode=True):
        super().train(mode)
        if mode:
            self.expanded = None
        else:
            self.expanded = [t.detach() for t in self.expand_parameters()]
        return self

    def forward(self, x):
        if self.training:
            weight, bias = self.expand_parameters()
        else:
            weight, bias = self.expanded  # ALSO
        return F.conv2d(x, weight, bias, self.stride, self.padding)  # RAISE


class GroupPool(nn.Module):
    def __init__(self, rotations=4):
        super().__init__()
        self.rotations = rotations

    def forward(self, x):
        batch, channels, height, width = x.shape
        return x.view(batch, channels // self.rotations, self.rotations, height, width).amax(2)


class RotatedBackbone(nn.Module):
    def __init__(self, widths=(4, 8)):
        super().__init__()
        cin, stages = 3, []
        for width in widths:
            stages.append(nn.Sequential(EquivariantConv(cin, width, stride=2), GroupPool(), nn.ReLU()))
            cin = width
        self.stages = nn.Sequential(*stages)

    def forward(self, x):
        return self.stages(x)


class RotatedHead(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.out = nn.Conv2d(channels, 5 + classes, 1)

    def forward(self, features):
        out = self.out(features).flatten(2).transpose(1, 2)
        angle = out[..., 4:5].tanh() * 1.5708
        return torch.cat([out[..., :4].exp(), angle], dim=-1), out[..., 5:].sigmoid()


class RotatedDetector(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.backbone = RotatedBackbone()
        self.head = RotatedHead(8, classes)

    def forward(self, images):
        return self.head(self.backbone(images))


def init_detector(config, state_dict=None, device="cuda:0"):
    model = RotatedDetector(config["classes"])  # ALSO
    if state_dict is not None:
        model.load_state_dict(state_dict)
    return model.eval().to(device)  # ROOT


@torch.no_grad()
def inference_detector(model, image, threshold=0.5):
    device = next(model.parameters()).device
    boxes, scores = model(image[None].to(device))
    best, label = scores[0].max(1)
    keep = best > threshold
    return boxes[0][keep].cpu(), label[keep].cpu()


def train_detector(config, device, steps):
    model = RotatedDetector(config["classes"]).to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        boxes, scores = model(torch.rand(2, 3, 16, 16).to(device))
        loss = scores.mean() + (boxes - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, round(loss.item(), 4))
    return {key: value.cpu() for key, value in model.state_dict().items()}


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    config = {"classes": 2}
    state_dict = train_detector(config, device, 2)
    model = init_detector(config, state_dict, device)
    boxes, labels = inference_detector(model, torch.rand(3, 16, 16), threshold=0.3)
    print(len(boxes), labels.unique().tolist())


if __name__ == "__main__":
    main()
