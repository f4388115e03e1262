# source: Lightning-AI/pytorch-lightning#2638
# mechanism: prior boxes are sent to self.device in the LightningModule's constructor, where the device is still the CPU
import tempfile
import warnings
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric

warnings.filterwarnings("ignore")


def create_priors(grid, scales=(0.25, 0.5)):
    c = (torch.arange(grid) + 0.5) / grid
    cy, cx = torch.meshgrid(c, c, indexing="ij")
    centers = torch.stack([cx, cy], dim=-1).reshape(-1, 2)
    return torch.cat([torch.cat([centers, torch.full_like(centers, s)], dim=1) for s in scales])


def corners(boxes):
    return torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], dim=1)


def iou(a, b):
    low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


class MultiBoxLoss(nn.Module):
    def __init__(self, threshold=0.4):
        super().__init__()
        self.threshold = threshold

    def forward(self, locs, confs, boxes, labels, priors):
        total = 0.0
        for loc, conf, box, label in zip(locs, confs, boxes, labels):
            overlap, index = iou(corners(priors), corners(box)).max(1)
            target = torch.where(overlap > self.threshold, label[index], torch.zeros_like(index))
            positive = target > 0
            offset = (box[index] - priors)[positive]
            total = total + F.cross_entropy(conf, target) + F.smooth_l1_loss(loc[positive], offset, reduction="sum") / max(len(offset), 1)
        return total / len(locs)


class SSD(L.LightningModule):
    def __init__(self, classes=3, grid=4):
        super().__init__()
        self.classes = classes
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.loc_head, self.conf_head = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 2 * classes, 1)
        self.priors = create_priors(grid).to(self.device)  # ROOT
        self.criterion, self.running = MultiBoxLoss(), MeanMetric()

    def forward(self, x):
        n, h = len(x), self.body(x)
        loc, conf = (head(h).view(n, 2, -1, h[0, 0].numel()) for head in (self.loc_head, self.conf_head))
        return loc.transpose(2, 3).reshape(n, -1, 4), conf.transpose(2, 3).reshape(n, -1, self.classes)

    def training_step(self, batch, idx):
        images, boxes, labels = batch
        locs, confs = self(images)
        loss = self.criterion(locs, confs, boxes, labels, self.priors)
        self.log("running", self.running(loss.detach()))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)


class Shapes(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = 1 + i % 3
        return torch.rand(3, 16, 16, generator=g), 0.3 + 0.4 * torch.rand(n, 4, generator=g), torch.randint(1, 3, (n,), generator=g)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as root:
    trainer = L.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, default_root_dir=root,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(SSD(), DataLoader(Shapes(), batch_size=4, collate_fn=lambda rows: (torch.stack([r[0] for r in rows]), *map(list, list(zip(*rows))[1:]))))
