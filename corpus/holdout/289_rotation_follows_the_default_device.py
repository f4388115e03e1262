# source: isaac-sim/IsaacLab#1863, PR#2002
# mechanism: geometry that is done on the CPU makes one tensor without a device; the program set another default one
# phase: data; aten::linalg_cross or aten::mul
# expect: raises
import numpy
import torch


class Camera:
    def __init__(self, positions, rotation):
        self.positions = torch.from_numpy(numpy.asarray(positions, dtype=numpy.float32))
        self.rotation = torch.tensor(rotation, dtype=torch.float32)  # ROOT

    def world_points(self, points):
        axis = self.rotation[1:].expand_as(points)
        twice = 2 * torch.linalg.cross(axis, points)  # RAISE
        turned = points + self.rotation[0] * twice + torch.linalg.cross(axis, twice)
        return turned.unsqueeze(0) + self.positions.unsqueeze(1)


class Simulation:
    def __init__(self, device, cameras):
        torch.set_default_device(device)
        self.state = torch.zeros(cameras, 13)
        self.camera = Camera([[0.0, 0.0, k] for k in range(cameras)], rotation=(1.0, 0.0, 0.0, 0.0))

    def render(self, mesh):
        points = self.camera.world_points(torch.from_numpy(mesh))
        self.state[:, :3] = points.mean(1)
        return self.state


mesh = numpy.random.default_rng(0).normal(size=(10, 3)).astype(numpy.float32)
Simulation("cuda", cameras=2).render(mesh)
