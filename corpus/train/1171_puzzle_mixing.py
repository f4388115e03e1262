# source: snu-mllab/PuzzleMix#7
# mechanism: a mixing function brings its mask to the device that is an argument; the caller leaves the default although the gradients are on the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def cost_matrix(blocks, device="cpu"):
    index = torch.arange(blocks, device=device).float()
    row, column = torch.meshgrid(index, index, indexing="ij")
    points = torch.stack([row.flatten(), column.flatten()], dim=1)
    return torch.cdist(points, points)[None]


def cut_labels(first, second, rounds=2):
    labels = (first > second).float()
    for _ in range(rounds):
        smooth = F.avg_pool2d(labels[None, None], 3, stride=1, padding=1)[0, 0]
        labels = (first - second + smooth - 0.5 > 0).float()
    return labels


def mask_transport(mask, saliency, eps):
    batch, blocks = mask.shape[0], mask.shape[-1]
    cost = cost_matrix(blocks, saliency.device)
    z = (mask > 0).float()
    gain = saliency.reshape(batch, -1, 1) * z.reshape(batch, 1, -1)  # RAISE
    plan = torch.softmax((gain - eps * cost) * 50, dim=2)
    return plan


def transport_image(images, plan, blocks):
    size = images.shape[-1] // blocks
    patches = F.unfold(images, size, stride=size)
    return F.fold(patches @ plan.transpose(1, 2), images.shape[-1], size, stride=size)


def mixup_graph(images, gradients, indices, blocks, eps=0.1, transport=True, device="cpu"):
    other = images[indices]
    pooled = F.adaptive_avg_pool2d(gradients, blocks)
    unary1 = pooled / pooled.sum((1, 2), keepdim=True)
    unary2 = unary1[indices]
    masks = [cut_labels(a, b) for a, b in zip(unary1.cpu(), unary2.cpu())]
    mask = torch.stack(masks).to(device)  # ALSO
    if transport:
        images = transport_image(images, mask_transport(mask, unary1, eps), blocks)
        other = transport_image(other, mask_transport(1 - mask, unary2, eps), blocks)
    large = F.interpolate(mask[:, None], size=images.shape[-1])
    ratio = mask.mean((1, 2))
    return large * images + (1 - large) * other, ratio


class SmallResNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.conv(x).relu().mean((2, 3)))


def saliency_of(model, images, labels):
    images = images.clone().requires_grad_(True)
    loss = F.cross_entropy(model(images), labels)
    (gradient,) = torch.autograd.grad(loss, images)
    return gradient.pow(2).mean(1).sqrt()


def mixed_batch(model, images, labels, blocks=4):
    gradients = saliency_of(model, images, labels)
    indices = torch.randperm(len(images), device=images.device)
    mixed, ratio = mixup_graph(images, gradients, indices, blocks, transport=True)  # ROOT
    return mixed, labels, labels[indices], ratio


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = SmallResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        images, labels = torch.rand(4, 3, 16, 16).to(device), torch.randint(0, 5, (4,)).to(device)
        mixed, first, second, ratio = mixed_batch(model, images, labels)
        logits = model(mixed)
        per_sample = ratio * F.cross_entropy(logits, first, reduction="none")
        per_sample = per_sample + (1 - ratio) * F.cross_entropy(logits, second, reduction="none")
        optimizer.zero_grad()
        per_sample.mean().backward()
        optimizer.step()
        print("step", step, round(per_sample.mean().item(), 4))


if __name__ == "__main__":
    main()
