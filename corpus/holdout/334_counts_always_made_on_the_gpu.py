# source: a variation of https://github.com/facebookresearch/dino/issues/135
# mechanism: predictions are collected on the CPU; the function that compares them makes its table on the GPU whatever it is given
# phase: evaluation; aten::index_add_
# expect: raises
import torch


def collect(model, loader):
    predictions, targets = [], []
    with torch.no_grad():
        for images, labels in loader:
            predictions.append(model(images.cuda()).argmax(1).cpu())
            targets.append(labels)
    return torch.cat(predictions), torch.cat(targets)


def confusion(predictions, targets, ignored, classes):
    kept = targets != ignored
    chosen, wanted = predictions[kept], targets[kept]
    cells = wanted * classes + chosen
    counts = torch.zeros(classes * classes, device="cuda")  # ROOT
    counts.index_add_(0, cells, torch.ones(len(cells)))  # RAISE
    return counts.view(classes, classes)


model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).cuda()
batches = [(torch.rand(3, 3, 4, 4), torch.tensor([0, 1, 3])) for _ in range(2)]
found, known = collect(model, batches)
table = confusion(found, known, ignored=2, classes=4)
(table.diag() / table.sum(1).clamp(min=1)).mean().item()
