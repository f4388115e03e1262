# source: WongKinYiu/yolov7#1283
# mechanism: a list of per-layer numbers is collected on the CPU beside lists on the GPU, and later filtered with a mask from the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class MultiScaleHead(nn.Module):
    def __init__(self, classes=2, width=6):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=4, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.heads = nn.ModuleList([nn.Conv2d(width, 5 + classes, 1) for _ in range(2)])

    def forward(self, images):
        first = self.stem(images).relu()
        features = [first, self.down(first).relu()]
        return [head(f).permute(0, 2, 3, 1).contiguous() for head, f in zip(self.heads, features)]


def decode(cells, prediction, stride):
    center = (prediction[:, :2].sigmoid() + cells.float()) * stride
    size = (prediction[:, 2:4].sigmoid() * 2).pow(2) * stride * 2
    return torch.cat([center - size / 2, center + size / 2], dim=1)


def box_iou(first, second):
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    overlap = (high - low).clamp(min=0).prod(2)
    area = lambda b: (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
    return overlap / (area(first)[:, None] + area(second)[None] - overlap + 1e-7)


class AssignmentLoss:
    def __init__(self, strides=(4, 8), balance=(4.0, 1.0), classes=2, topk=3):
        self.strides = strides
        self.balance = balance
        self.classes = classes
        self.topk = topk

    def candidates(self, predictions, boxes, batch_idx):
        cells, boxes_out, logits, from_which_layer = [], [], [], []
        for i, prediction in enumerate(predictions):
            p = prediction[batch_idx]
            height, width = p.shape[:2]
            gy, gx = torch.meshgrid(
                torch.arange(height, device=p.device), torch.arange(width, device=p.device), indexing="ij"
            )
            cell = torch.stack([gx.flatten(), gy.flatten()], dim=1)
            p = p.view(-1, p.shape[-1])
            centers = (boxes[:, :2] + boxes[:, 2:]) / 2 / self.strides[i]
            near = (torch.cdist(cell.float() + 0.5, centers).amin(1) < 1.5).nonzero()[:, 0]
            cells.append(cell[near])
            boxes_out.append(decode(cell[near], p[near], self.strides[i]))
            logits.append(p[near, 4:])
            from_which_layer.append(torch.ones(size=(len(near),)) * i)  # ROOT
        from_which_layer = torch.cat(from_which_layer, dim=0)  # ALSO
        return torch.cat(cells), torch.cat(boxes_out), torch.cat(logits), from_which_layer  # ALSO

    def assign(self, predictions, boxes, labels, batch_idx):
        cells, decoded, logits, from_which_layer = self.candidates(predictions, boxes, batch_idx)
        iou = box_iou(boxes, decoded)
        target = F.one_hot(labels, self.classes).float()
        cost_class = F.binary_cross_entropy_with_logits(
            logits[None, :, 1:].expand(len(boxes), -1, -1), target[:, None].expand(-1, len(decoded), -1), reduction="none"
        ).sum(-1)
        cost = cost_class - 3.0 * (iou + 1e-8).log()
        matching = torch.zeros_like(cost)
        for row in range(len(boxes)):
            _, index = cost[row].topk(min(self.topk, cost.shape[1]), largest=False)
            matching[row, index] = 1.0
        fg_mask = matching.sum(0) > 0
        matched = matching[:, fg_mask].argmax(0)
        from_which_layer = from_which_layer[fg_mask]  # RAISE # ALSO
        return decoded[fg_mask], logits[fg_mask], matched, from_which_layer

    def __call__(self, predictions, targets):
        total = 0
        for batch_idx, (boxes, labels) in enumerate(targets):
            decoded, logits, matched, layers = self.assign(predictions, boxes, labels, batch_idx)
            for i, balance in enumerate(self.balance):
                of_layer = layers == i
                if of_layer.any():
                    chosen = matched[of_layer]
                    iou = box_iou(decoded[of_layer], boxes[chosen]).diagonal()
                    total = total + (1 - iou).mean() * balance
                    total = total + F.cross_entropy(logits[of_layer][:, 1:], labels[chosen])
        return total


def batches(count):
    gen = torch.Generator().manual_seed(2)
    for _ in range(count):
        low = torch.rand(2, 2, generator=gen) * 12
        boxes = torch.cat([low, low + 8 + torch.rand(2, 2, generator=gen) * 8], dim=1)
        yield torch.rand(1, 3, 32, 32, generator=gen), [(boxes, torch.tensor([0, 1]))]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = MultiScaleHead().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    compute_loss = AssignmentLoss()
    for images, targets in batches(2):
        targets = [(boxes.to(device), labels.to(device)) for boxes, labels in targets]
        loss = compute_loss(model(images.to(device)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
