# source: facebookresearch/pytorch3d#1021
# mechanism: camera container moves everything it is given to its device argument, whose default is the CPU; the conversion function calls it without the device of its inputs
# phase: point projection; failing op: aten::bmm
# expect: raises
import torch

dev = torch.device("cuda", 0)

class TensorProperties:
    def __init__(self, device="cpu", **kwargs):
        self.device = torch.device(device)
        for name, value in kwargs.items():
            setattr(self, name, torch.as_tensor(value).to(self.device))

class PerspectiveCameras(TensorProperties):
    def __init__(self, R, T, focal_length, principal_point, device="cpu"):
        super().__init__(device=device, R=R, T=T, focal_length=focal_length, principal_point=principal_point)

    def transform_points(self, points):
        view = torch.bmm(points, self.R) + self.T[:, None]  # RAISE
        return view[..., :2] / view[..., 2:] * self.focal_length[:, None] + self.principal_point[:, None]

def cameras_from_opencv_projection(R, tvec, camera_matrix, image_size):
    focal = torch.stack([camera_matrix[:, 0, 0], camera_matrix[:, 1, 1]], -1)
    wh = image_size.to(R).flip(dims=(1,))
    scale = wh.min(dim=1, keepdim=True)[0] / 2.0
    p0 = -(camera_matrix[:, :2, 2] - wh / 2.0) / scale
    R3d, T3d = R.clone().permute(0, 2, 1), tvec.clone()
    R3d[:, :, :2] *= -1
    T3d[:, :2] *= -1
    return PerspectiveCameras(R=R3d, T=T3d, focal_length=focal / scale, principal_point=p0)  # ROOT

class SilhouetteLoss:
    def __init__(self, cameras, target):
        self.cameras, self.target = cameras, target

    def __call__(self, vertices):
        return (self.cameras.transform_points(vertices) - self.target).square().mean()

R, tvec = torch.eye(3, device=dev)[None], torch.tensor([[0.0, 0.0, 4.0]], device=dev)
K = torch.tensor([[[100.0, 0.0, 32.0], [0.0, 100.0, 24.0], [0.0, 0.0, 1.0]]], device=dev)
cameras = cameras_from_opencv_projection(R, tvec, K, torch.tensor([[48, 64]], device=dev))
vertices = torch.randn(1, 10, 3, device=dev, requires_grad=True)
SilhouetteLoss(cameras, torch.zeros(1, 10, 2, device=dev))(vertices).backward()
