# source: kornia/kornia#2926
# mechanism: an early return for images without keypoints gives an empty tensor that is made without the device of the input
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class CornerDetector(nn.Module):
    def __init__(self, limit=8, threshold=0.05):
        super().__init__()
        self.limit = limit
        self.threshold = threshold
        kernel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("kernels", torch.stack([kernel, kernel.t()])[:, None])

    def forward(self, image):
        gradients = F.conv2d(image, self.kernels)
        response = gradients.pow(2).prod(dim=1)[0]
        found = (response > self.threshold).nonzero()
        return found[: self.limit]


class PatchDescriptor(nn.Module):
    def __init__(self, patch=4, dim=16):
        super().__init__()
        self.patch = patch
        self.dim = dim
        self.project = nn.Linear(patch * patch, dim)

    def extract(self, image, keypoints):
        padded = F.pad(image, (0, self.patch, 0, self.patch))[0, 0]
        patches = [padded[y:y + self.patch, x:x + self.patch] for y, x in keypoints.tolist()]
        return torch.stack(patches).flatten(1)

    def forward(self, image, keypoints):
        if len(keypoints) == 0:
            return torch.empty(0, self.dim)  # ROOT
        return F.normalize(self.project(self.extract(image, keypoints)), dim=1)


def match_nearest(first, second, limit):
    distance = torch.cdist(first, second)  # RAISE
    if distance.numel() == 0:
        return torch.empty(0, 2, dtype=torch.long, device=distance.device)
    value, index = distance.min(dim=1)
    rows = (value < limit).nonzero()[:, 0]
    return torch.stack([rows, index[rows]], dim=1)


class LocalFeatureMatcher(nn.Module):
    def __init__(self, detector, descriptor, limit=1.5):
        super().__init__()
        self.detector = detector
        self.descriptor = descriptor
        self.limit = limit

    def describe(self, image):
        keypoints = self.detector(image)
        return keypoints, self.descriptor(image, keypoints)

    def forward(self, batch):
        points0, descriptors0 = self.describe(batch["image0"])
        points1, descriptors1 = self.describe(batch["image1"])
        matches = match_nearest(descriptors0, descriptors1, self.limit)
        return {"keypoints0": points0[matches[:, 0]], "keypoints1": points1[matches[:, 1]]}


def image_pairs(device):
    gen = torch.Generator().manual_seed(2)
    textured = torch.rand(1, 1, 16, 16, generator=gen).to(device)
    yield {"image0": textured, "image1": textured.roll(2, dims=-1)}
    yield {"image0": torch.zeros(1, 1, 16, 16, device=device), "image1": textured}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    matcher = LocalFeatureMatcher(CornerDetector(), PatchDescriptor()).to(device).eval()
    with torch.no_grad():
        for number, batch in enumerate(image_pairs(device)):
            found = matcher(batch)
            print("pair", number, "matches", len(found["keypoints0"]))


if __name__ == "__main__":
    main()
