# source: mahmoodlab/MIL-Lab#4
# mechanism: a loss module moves its plain tensor attribute in an overridden cuda() only, and a parent's to(device) does not call that
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def delta(target, labels, alpha):
    return alpha * (target[:, None] != labels[None]).float()  # RAISE


def top1_smooth_svm(scores, target, labels, tau, alpha):
    scores = scores + delta(target, labels, alpha) - scores.gather(1, target[:, None])
    return tau * torch.logsumexp(scores / tau, dim=1)


class SmoothTop1SVM(nn.Module):
    def __init__(self, n_classes, alpha=1.0, tau=1.0):
        super().__init__()
        self.alpha = alpha
        self.tau = tau
        self.labels = torch.arange(n_classes)  # ROOT

    def cuda(self, device=None):
        super().cuda(device)
        self.labels = self.labels.cuda(device)
        return self

    def forward(self, scores, target):
        losses = top1_smooth_svm(scores, target, self.labels, self.tau, self.alpha)  # ALSO
        return losses.mean()


class GatedAttention(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.a = nn.Linear(dim, hidden)
        self.b = nn.Linear(dim, hidden)
        self.c = nn.Linear(hidden, 1)

    def forward(self, h):
        return self.c(torch.tanh(self.a(h)) * torch.sigmoid(self.b(h)))[..., 0]


class ClusteredBagModel(nn.Module):
    def __init__(self, dim=12, hidden=8, classes=2, k_sample=3):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU())
        self.attention = GatedAttention(hidden, hidden)
        self.classifier = nn.Linear(hidden, classes)
        self.instance_heads = nn.ModuleList([nn.Linear(hidden, 2) for _ in range(classes)])
        self.instance_loss = SmoothTop1SVM(2)
        self.k_sample = k_sample

    def inst_eval(self, scores, h, head):
        top = scores.topk(self.k_sample).indices
        low = (-scores).topk(self.k_sample).indices
        logits = head(torch.cat([h[top], h[low]]))
        positive = torch.ones(self.k_sample, dtype=torch.long, device=h.device)
        targets = torch.cat([positive, torch.zeros_like(positive)])
        return self.instance_loss(logits, targets)

    def forward(self, bag, label, bag_weight=0.7):
        h = self.embed(bag)
        scores = self.attention(h)
        slide = scores.softmax(0) @ h
        logits = self.classifier(slide)[None]
        instance = self.inst_eval(scores, h, self.instance_heads[int(label)])
        loss = bag_weight * F.cross_entropy(logits, label) + (1 - bag_weight) * instance
        return {"loss": loss, "logits": logits}


def bags(count, dim):
    gen = torch.Generator().manual_seed(9)
    for number in range(count):
        label = torch.tensor([number % 2])
        yield torch.rand(8 + number, dim, generator=gen) + label, label


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ClusteredBagModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for bag, label in bags(4, 12):
        out = model(bag.to(device), label.to(device))
        optimizer.zero_grad()
        out["loss"].backward()
        optimizer.step()
        print(round(out["loss"].item(), 4), out["logits"].argmax(1).item())


if __name__ == "__main__":
    main()
