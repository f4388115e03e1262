# source: https://github.com/facebookresearch/pytorch3d/issues/1021
# mechanism: a conversion helper makes its object without handing on the device of what it was given; the base class defaults to the CPU
# phase: forward; aten::mul
# expect: raises
import torch

device = "cuda"


class Tensors:
    def __init__(self, device="cpu", **fields):
        self.device = torch.device(device)
        for name, value in fields.items():
            setattr(self, name, torch.as_tensor(value).to(self.device))


class Lights(Tensors):
    def __init__(self, color, direction, device="cpu"):
        super().__init__(device=device, color=color, direction=direction)

    def shade(self, normals):
        return self.color * (normals @ self.direction).clamp(min=0)[:, None]  # RAISE


def default_lights():
    return Lights([1.0, 1.0, 1.0], [0.0, 0.0, 1.0], device=device)


def lights_from_camera(direction):
    color = torch.ones(3, device=direction.device)
    return Lights(color, direction / direction.norm())  # ROOT


normals = torch.nn.functional.normalize(torch.randn(8, 3, device=device), dim=1)
for lights in (default_lights(), lights_from_camera(torch.tensor([0.0, 1.0, 1.0], device=device))):
    print(lights.shade(normals).mean().item())
