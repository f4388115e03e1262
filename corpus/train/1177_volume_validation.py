# source: Project-MONAI/tutorials#1139
# mechanism: a post-processing step brings the predictions to the CPU and not the labels that the metric compares them with
# expect: raises
import torch
from torch import nn


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, data):
        for transform in self.transforms:
            data = transform(data)
        return data


class ToDeviced:
    def __init__(self, keys, device):
        self.keys = keys
        self.device = torch.device(device)

    def __call__(self, data):
        return {k: v.to(self.device) if k in self.keys else v for k, v in data.items()}


class AsDiscreted:
    def __init__(self, keys, argmax, to_onehot):
        self.keys = keys
        self.argmax = argmax
        self.to_onehot = to_onehot

    def __call__(self, data):
        data = dict(data)
        for key, argmax in zip(self.keys, self.argmax):
            value = data[key].argmax(0, keepdim=True) if argmax else data[key]
            data[key] = nn.functional.one_hot(value[0].long(), self.to_onehot).movedim(-1, 0).float()
        return data


class UNet3d(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, classes, 1))

    def forward(self, x):
        return self.net(x)


def sliding_window_inference(inputs, roi, predictor):
    outputs = []
    for start in range(0, inputs.shape[-1], roi):
        outputs.append(predictor(inputs[..., start:start + roi]))
    return torch.cat(outputs, dim=-1)


class DiceMetric:
    def __init__(self, include_background=False):
        self.include_background = include_background
        self.values = []

    def compute(self, y_pred, y):
        if not self.include_background:
            y_pred, y = y_pred[1:], y[1:]
        overlap = (y_pred * y).flatten(1).sum(1)  # RAISE
        return 2 * overlap / (y_pred.flatten(1).sum(1) + y.flatten(1).sum(1)).clamp(min=1)

    def __call__(self, y_pred, y):
        for p, t in zip(y_pred, y):
            self.values.append(self.compute(p, t).cpu())

    def aggregate(self):
        return torch.stack(self.values).mean()


def decollate_batch(batch):
    size = len(batch["image"])
    return [{key: value[i] for key, value in batch.items()} for i in range(size)]


def from_engine(keys):
    def extract(items):
        return tuple([item[key] for item in items] for key in keys)

    return extract


def validation_loader(count):
    gen = torch.Generator().manual_seed(3)
    for _ in range(count):
        image = torch.rand(1, 1, 6, 6, 8, generator=gen)
        yield {"image": image, "label": (image > 0.5).long()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = UNet3d(2).to(device).eval()
    post = Compose(
        [
            ToDeviced(keys=["pred"], device="cpu"),  # ROOT
            AsDiscreted(keys=["pred", "label"], argmax=[True, False], to_onehot=2),
        ]
    )
    dice_metric = DiceMetric()
    with torch.no_grad():
        for batch in validation_loader(2):
            batch = {key: value.to(device) for key, value in batch.items()}  # ALSO
            batch["pred"] = sliding_window_inference(batch["image"], 4, model)
            items = [post(item) for item in decollate_batch(batch)]
            val_outputs, val_labels = from_engine(["pred", "label"])(items)
            dice_metric(y_pred=val_outputs, y=val_labels)  # ALSO
    print("dice", round(dice_metric.aggregate().item(), 4))


if __name__ == "__main__":
    main()
