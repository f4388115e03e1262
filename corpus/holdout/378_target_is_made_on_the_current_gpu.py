# source: Project-MONAI/GenerativeModels PR#371
# mechanism: a loss asks whether its input is on a GPU, and makes the target on "cuda", which is another one
# phase: loss; aten::mse_loss
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class AdversarialLoss(nn.Module):
    def __init__(self, real=1.0, fake=0.0):
        super().__init__()
        self.values = {True: real, False: fake}

    def target(self, scores, is_real):
        place = "cuda" if scores.is_cuda else "cpu"  # ROOT
        return torch.full(scores.shape, self.values[is_real], device=place)  # ALSO

    def forward(self, scores, is_real):
        return nn.functional.mse_loss(scores, self.target(scores, is_real))  # RAISE


critic = nn.Conv2d(1, 1, 3).to("cuda:1")
images = torch.rand(2, 1, 8, 8, device="cuda:1")
AdversarialLoss()(critic(images), True).backward()
