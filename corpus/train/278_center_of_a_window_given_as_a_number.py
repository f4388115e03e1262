# source: kornia/kornia PR#2838
# mechanism: a parameter may be a number or a tensor; a number is made a tensor without the other parameter's device
# phase: forward; aten::sub
# expect: raises
import torch

dev = torch.device("cuda", 0)


def gaussian(size, sigma, center=None):
    center = float(size // 2) if center is None else center
    if not torch.is_tensor(center):
        center = torch.tensor([[center]])  # ROOT
    positions = torch.arange(size, device=sigma.device, dtype=sigma.dtype)
    bump = torch.exp(-((positions - center) ** 2) / (2 * sigma**2))  # RAISE  # ALSO
    return bump / bump.sum(-1, keepdim=True)


class LearnedBlur(torch.nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.log_sigma = torch.nn.Parameter(torch.zeros(channels, 1))
        self.size = size

    def forward(self, sound):
        kernels = gaussian(self.size, self.log_sigma.exp())
        return torch.nn.functional.conv1d(
            sound, kernels.unsqueeze(1), padding=self.size // 2, groups=sound.shape[1]
        )


model = torch.nn.Sequential(torch.nn.Conv1d(1, 3, 3, padding=1), LearnedBlur(3, size=5)).to(dev)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(2, 1, 16, device=dev)).pow(2).mean()
loss.backward()
optimizer.step()
