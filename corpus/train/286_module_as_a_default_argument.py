# source: pytorch/pytorch#58140
# mechanism: a module made in a signature belongs to every instance; moving the first one moves it under the second
# phase: initialization; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Palette(torch.nn.Module):
    def __init__(self, channels=3):
        super().__init__()
        self.register_buffer("spread", torch.linspace(0.5, 1.5, channels).view(1, channels, 1, 1))

    def forward(self, images):
        return (images * self.spread).sigmoid()  # RAISE


class ImageParameters(torch.nn.Module):
    def __init__(self, size, decorrelate=Palette()):  # ROOT
        super().__init__()
        self.decorrelate = decorrelate  # ALSO
        with torch.no_grad():
            start = self.decorrelate(0.01 * torch.randn(1, 3, size, size))
        self.pixels = torch.nn.Parameter(start)

    def forward(self):
        return self.decorrelate(self.pixels)


def visualize(net, size, steps):
    image = ImageParameters(size).to(dev)
    optimizer = torch.optim.Adam(image.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (-net(image()).mean()).backward()
        optimizer.step()
    return image().detach()


net = torch.nn.Conv2d(3, 2, 3).to(dev)
pictures = [visualize(net, size, steps=2) for size in (8, 6)]
