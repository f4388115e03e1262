# source: PytorchConnectomics/pytorch_connectomics#129
# mechanism: a visualizer paints into a canvas on the CPU with masks of a prediction that is still on the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class SummaryWriter:
    def __init__(self):
        self.records = []

    def add_image(self, tag, image, step):
        assert image.device.type == "cpu"
        self.records.append((tag, tuple(image.shape), round(image.mean().item(), 4), step))


def make_colors(count, seed=0):
    gen = torch.Generator().manual_seed(seed)
    colors = torch.rand(count, 3, generator=gen)
    colors[0] = 0
    return colors


class Visualizer:
    def __init__(self, target_opt, writer, classes, samples=2):
        self.target_opt = target_opt
        self.writer = writer
        self.samples = samples
        self.colors = make_colors(classes)

    def prepare_data(self, volume, label, output):
        volume = volume[: self.samples].detach().cpu()
        label = label[: self.samples].detach().cpu()
        return volume, label, output[: self.samples].detach()  # ALSO

    def permute_truncate(self, data):
        return data[:, :, data.shape[2] // 2]

    def paint(self, label):
        canvas = torch.zeros(len(label), label.shape[-2], label.shape[-1], 3)
        for index, color in enumerate(self.colors):
            canvas = torch.where((label == index)[..., None], color, canvas)  # RAISE
        return canvas.permute(0, 3, 1, 2)

    def get_semantic_map(self, output):
        output = output.argmax(dim=1)  # ROOT
        return self.paint(output)  # ALSO

    def get_binary_map(self, output):
        return output.sigmoid().expand(-1, 3, -1, -1).cpu()

    def visualize(self, volume, label, output, step):
        volume, label, output = self.prepare_data(volume, label, output)
        panels = [self.permute_truncate(volume).expand(-1, 3, -1, -1)]
        middle = self.permute_truncate(output)  # ALSO
        if self.target_opt == "semantic":
            panels.append(self.get_semantic_map(middle))  # ALSO
            panels.append(self.paint(label[:, label.shape[1] // 2]))
        else:
            panels.append(self.get_binary_map(middle))
            panels.append(label[:, None, label.shape[1] // 2].float().expand(-1, 3, -1, -1))
        grid = torch.cat([torch.cat(list(p), dim=1) for p in panels], dim=2)
        self.writer.add_image(self.target_opt, grid, step)


class VolumeNet(nn.Module):
    def __init__(self, out_channels):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ELU(), nn.Conv3d(4, out_channels, 1))

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, target_opt, classes, device, writer):
        self.device = device
        self.target_opt = target_opt
        self.model = VolumeNet(classes if target_opt == "semantic" else 1).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.visualizer = Visualizer(target_opt, writer, classes)

    def loss(self, output, label):
        if self.target_opt == "semantic":
            return F.cross_entropy(output, label)
        return F.binary_cross_entropy_with_logits(output[:, 0], (label > 0).float())

    def train(self, iterations):
        for step in range(iterations):
            volume = torch.rand(2, 1, 3, 8, 8).to(self.device)
            label = torch.randint(0, 3, (2, 3, 8, 8)).to(self.device)
            output = self.model(volume)
            loss = self.loss(output, label)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.visualizer.visualize(volume, label, output, step)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    writer = SummaryWriter()
    for target_opt in ("binary", "semantic"):
        Trainer(target_opt, 3, device, writer).train(2)
    for record in writer.records:
        print(*record)


if __name__ == "__main__":
    main()
