# source: photosynthesis-team/piq#100
# mechanism: only when the matrix square root is not finite is a small multiple of the identity added; the identity is made on the CPU, so the metric works until degenerate features come
# phase: image metric; failing op: aten::add
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def sqrt_newton_schulz(matrix, iterations=12):
    norm = matrix.norm()
    eye = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    y, z = matrix / norm, eye.clone()
    for _ in range(iterations):
        t = 0.5 * (3.0 * eye - z @ y)
        y, z = y @ t, t @ z
    return y * norm.sqrt()

def compute_fid(mu1, sigma1, mu2, sigma2, eps=1e-6):
    diff = mu1 - mu2
    covmean = sqrt_newton_schulz(sigma1 @ sigma2)
    if not torch.isfinite(covmean).all():
        offset = torch.eye(sigma1.size(0), dtype=mu1.dtype) * eps  # ROOT
        covmean = sqrt_newton_schulz((sigma1 + offset) @ (sigma2 + offset))  # RAISE
    return diff.dot(diff) + sigma1.trace() + sigma2.trace() - 2 * covmean.trace()

class FID(nn.Module):
    def statistics(self, features):
        return features.mean(0), features.T.cov()

    def forward(self, predicted, target):
        return compute_fid(*self.statistics(predicted), *self.statistics(target))

torch.manual_seed(0)
metric = FID()
target = torch.randn(32, 4, device=dev, dtype=torch.float64)
for scale in (1.0, 0.5, 0.0):
    metric(target.flip(0) * scale, target)
