# source: cvpr-vand/challenge PR#4, pytorch/examples PR#1073
# mechanism: an evaluation loop moves the images of a batch and forgets its targets, which are dicts in a list
# phase: metrics; aten::_cdist_forward
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Scenes(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        boxes = torch.rand(index % 2 + 1, 4)
        return torch.rand(3, 8, 8), {"boxes": boxes, "labels": torch.zeros(len(boxes), dtype=torch.long)}


def collate(samples):
    images, targets = zip(*samples)
    return {"images": torch.stack(images), "targets": list(targets)}


class Detector(torch.nn.Module):
    def __init__(self, queries):
        super().__init__()
        self.queries = queries
        self.head = torch.nn.Linear(3 * 8 * 8, queries * 4)

    def forward(self, images):
        return self.head(images.flatten(1)).view(-1, self.queries, 4).sigmoid()


def matching_cost(predicted, target):
    return torch.cdist(predicted, target["boxes"], p=1)  # RAISE  # ALSO


@torch.no_grad()
def evaluate(model, loader):
    nearest = []
    for batch in loader:
        images, targets = batch["images"].to(dev), batch["targets"]  # ROOT
        for boxes, target in zip(model(images), targets):  # ALSO
            nearest.append(matching_cost(boxes, target).amin(0).mean())
    return torch.stack(nearest).mean().item()


model = Detector(queries=5).to(dev).eval()
evaluate(model, torch.utils.data.DataLoader(Scenes(), batch_size=2, collate_fn=collate))
