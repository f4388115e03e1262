# source: seasonSH/LiftedGAN PR#1
# mechanism: camera helper has device="cpu" as its default and brings its inputs there; the renderer calls it without a device
# phase: rendering; failing op: aten::bmm
# expect: raises
import math
import torch
import torch.nn.functional as F

def as_batch(*values, device):
    values = [torch.as_tensor(v, dtype=torch.float32).to(device) for v in values]
    n = max(v.shape[0] for v in values)
    return [v.expand(n, -1) for v in values]

def look_at_rotation(position, at=((0, 0, 0),), up=((0, 1, 0),), device="cpu"):
    position, at, up = as_batch(position, at, up, device=device)
    z = F.normalize(at - position, eps=1e-5)
    x = F.normalize(torch.cross(up, z, dim=1), eps=1e-5)
    y = F.normalize(torch.cross(z, x, dim=1), eps=1e-5)
    return torch.stack([x, y, z], dim=1).transpose(1, 2)

class Renderer:
    def __init__(self, size, fov, device):
        self.size, self.device = size, device
        self.focal = size / 2 / math.tan(math.radians(fov) / 2)

    def camera_position(self, view):
        azim, elev = view[:, 0], view[:, 1]
        return 2.7 * torch.stack([elev.cos() * azim.sin(), elev.sin(), elev.cos() * azim.cos()], 1)

    def set_view(self, view):
        eye = self.camera_position(view)
        self.R = look_at_rotation(eye)  # ROOT
        self.T = -torch.bmm(self.R.transpose(1, 2), eye[:, :, None])[:, :, 0]  # RAISE

    def project(self, verts):
        cam = verts @ self.R + self.T[:, None]
        return self.focal * cam[..., :2] / cam[..., 2:].clamp(min=1e-3) + self.size / 2

device = torch.device("cuda", 0)
renderer = Renderer(64, 10, device)
renderer.set_view(torch.randn(2, 2, device=device).tanh())
renderer.project(torch.randn(2, 10, 3, device=device))
