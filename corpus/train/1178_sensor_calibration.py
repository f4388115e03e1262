# source: IIPCVLAB/LCCNet#4
# mechanism: the running sum of a validation loop is made on the CPU and errors that were computed on the GPU are added in place
# expect: raises
import math

import torch
from torch import nn


def quaternion_multiply(q, r):
    w0, x0, y0, z0 = q.unbind(-1)
    w1, x1, y1, z1 = r.unbind(-1)
    return torch.stack(
        [
            w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
            w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
            w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
            w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
        ],
        dim=-1,
    )


def quaternion_distance(q, r):
    inverse = r * torch.tensor([1.0, -1.0, -1.0, -1.0], device=r.device)
    t = quaternion_multiply(q, inverse)
    return 2 * torch.atan2(t[..., 1:].norm(dim=-1), t[..., 0].abs())


class CalibrationNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.camera = nn.Conv2d(3, width, 3, stride=4, padding=1)
        self.lidar = nn.Conv2d(1, width, 3, stride=4, padding=1)
        self.transl = nn.Linear(2 * width, 3)
        self.rot = nn.Linear(2 * width, 4)

    def forward(self, rgb, depth):
        features = torch.cat([self.camera(rgb), self.lidar(depth)], dim=1).relu().mean((2, 3))
        return self.transl(features), nn.functional.normalize(self.rot(features), dim=1)


class PoseLoss(nn.Module):
    def __init__(self, rescale_trans=1.0, rescale_rot=2.0):
        super().__init__()
        self.rescale_trans = rescale_trans
        self.rescale_rot = rescale_rot

    def forward(self, target_transl, target_rot, transl, rot):
        loss_transl = nn.functional.smooth_l1_loss(transl, target_transl)
        loss_rot = quaternion_distance(rot, target_rot).mean()
        return self.rescale_trans * loss_transl + self.rescale_rot * loss_rot


def train(model, optimizer, rgb, depth, target_transl, target_rot, loss_fn):
    model.train()
    transl, rot = model(rgb, depth)
    loss = loss_fn(target_transl, target_rot, transl, rot)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def val(model, rgb, depth, target_transl, target_rot, loss_fn):
    model.eval()
    transl, rot = model(rgb, depth)
    loss = loss_fn(target_transl, target_rot, transl, rot)
    transl_error = (target_transl - transl).abs().sum(0) * 100  # ALSO
    rot_error = quaternion_distance(rot, target_rot).sum() * 180 / math.pi
    return loss.item(), transl_error, rot_error.item()  # ALSO


def samples(count, seed):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(count):
        rot = nn.functional.normalize(torch.randn(2, 4, generator=gen), dim=1)
        yield (
            torch.rand(2, 3, 16, 16, generator=gen),
            torch.rand(2, 1, 16, 16, generator=gen),
            torch.rand(2, 3, generator=gen),
            rot,
        )


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = CalibrationNet().to(device)
    loss_fn = PoseLoss().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for sample in samples(2, 1):
        print("train", round(train(model, optimizer, *[t.to(device) for t in sample], loss_fn), 4))
    total_transl_error = torch.zeros(3)  # ROOT
    total_rot_error, seen = 0.0, 0
    for sample in samples(2, 2):
        sample = [t.to(device) for t in sample]
        loss, transl_error, rot_error = val(model, *sample, loss_fn)
        total_transl_error += transl_error  # RAISE # ALSO
        total_rot_error += rot_error
        seen += len(sample[0])
    print("transl", [round(v, 2) for v in (total_transl_error / seen).tolist()])
    print("rot", round(total_rot_error / seen, 2))


if __name__ == "__main__":
    main()
