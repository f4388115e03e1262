# source: JDAI-CV/fast-reid#690
# mechanism: the distiller keeps its teachers in a plain list, hence moving the distiller to its rank's GPU leaves the teachers on the GPU on which they were built
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn.functional as F
from torch import nn


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, images):
        return F.relu(self.norm(self.stem(images))).mean(dim=(2, 3))  # RAISE


class Head(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.cls = nn.Linear(width, classes)

    def forward(self, feats):
        return self.cls(F.normalize(feats, dim=1))


class ReidModel(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.backbone = Backbone(width)
        self.heads = Head(width, classes)

    def forward(self, images):
        return self.heads(self.backbone(images))


def build_teacher(cfg, state=None):
    teacher = ReidModel(cfg["teacher_width"], cfg["classes"])
    if state is not None:
        teacher.load_state_dict(state)
    for p in teacher.parameters():
        p.requires_grad_(False)
    return teacher.to(cfg["default_device"]).eval()


class Distiller(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.student = ReidModel(cfg["student_width"], cfg["classes"])
        self.teachers = [build_teacher(cfg) for _ in range(cfg["num_teachers"])]  # ALSO
        self.register_buffer("pixel_mean", torch.tensor([0.4, 0.4, 0.4]).view(1, 3, 1, 1))
        self.temperature = 4.0

    @property
    def device(self):
        return self.pixel_mean.device

    def preprocess(self, batch):
        return batch["images"].to(self.device) - self.pixel_mean

    def forward(self, batch):
        images = self.preprocess(batch)
        targets = batch["targets"].to(self.device)
        logits = self.student(images)
        loss = F.cross_entropy(logits, targets)
        for teacher in self.teachers:  # ROOT
            with torch.no_grad():
                soft = F.softmax(teacher(images) / self.temperature, dim=1)
            loss = loss + F.kl_div(F.log_softmax(logits / self.temperature, 1), soft, reduction="batchmean")
        return loss


def batches(cfg, steps):
    for _ in range(steps):
        yield {
            "images": torch.rand(4, 3, 8, 8),
            "targets": torch.randint(0, cfg["classes"], (4,)),
        }


def train_worker(local_rank, cfg):
    device = torch.device("cuda", local_rank)
    model = Distiller(cfg).to(device)
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.05)
    history = []
    for batch in batches(cfg, 2):
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def main():
    cfg = dict(student_width=4, teacher_width=8, classes=5, num_teachers=2, default_device="cuda")
    for rank in range(torch.cuda.device_count()):
        print(rank, train_worker(rank, cfg))


if __name__ == "__main__":
    main()
