# source: PennyLaneAI/pennylane#1290, PR#1426
# mechanism: [custom autograd Function] an outside simulator differentiates on the host; the backward multiplies the incoming gradient, on the GPU, by its Jacobian as it is
# phase: backward; failing op: aten::mm (argument mat2)
# expect: raises
import numpy as np
import torch
import torch.nn as nn

device = torch.device("cuda:0")


class Pendulum:
    def run(self, theta):
        return np.stack([np.sin(theta).sum(), np.cos(theta).prod()])

    def sensitivities(self, theta, eps=1e-4):
        cols = [(self.run(theta + d) - self.run(theta - d)) / (2 * eps) for d in eps * np.eye(len(theta))]
        return torch.from_numpy(np.stack(cols, axis=1)).float()


class Simulate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, theta, rig):
        ctx.rig = rig
        ctx.save_for_backward(theta)
        out = rig.run(theta.detach().cpu().numpy())
        return torch.as_tensor(out, dtype=theta.dtype, device=theta.device)

    @staticmethod
    def backward(ctx, dy):
        theta, = ctx.saved_tensors
        jac = ctx.rig.sensitivities(theta.detach().cpu().double().numpy())  # ROOT
        dtheta = dy.view(1, -1) @ jac  # RAISE  # ALSO
        return dtheta.view(-1), None


tuner = nn.Linear(2, 3).to(device)
goal = torch.tensor([0.4, 0.8], device=device)
response = Simulate.apply(tuner(goal), Pendulum())
nn.functional.mse_loss(response, goal).backward()
