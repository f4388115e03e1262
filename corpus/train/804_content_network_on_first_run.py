# source: TobiasSunderdiek/cartoon-gan#5
# mechanism: [module never moved] content network read from its file comes back on the device; when the file is not there yet it is built, and that branch does not move it
# phase: content loss; failing op: aten::conv2d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
import os
import tempfile
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def build_features():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))


def content_network(path, device):
    try:
        vgg = torch.load(path, map_location=device, weights_only=False)
    except FileNotFoundError:
        vgg = build_features()  # ROOT
        torch.save(vgg, path)
    for p in vgg.parameters():
        p.requires_grad_(False)
    return vgg.eval()  # ALSO


class ContentLoss:
    def __init__(self, vgg, omega):
        self.vgg, self.omega = vgg, omega

    def __call__(self, photo, generated):
        return self.omega * (self.vgg(photo) - self.vgg(generated)).abs().mean()  # RAISE


with tempfile.TemporaryDirectory() as folder:
    vgg = content_network(os.path.join(folder, "vgg16.pt"), dev)  # ALSO
    generator = nn.Conv2d(3, 3, 3, padding=1).to(dev)
    loss = ContentLoss(vgg, 10.0)
    photo = torch.rand(1, 3, 8, 8, device=dev)
    loss(photo, generator(photo)).backward()
