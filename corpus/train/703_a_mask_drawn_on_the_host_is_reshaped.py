# source: kornia/kornia#4151, PR#4164
# mechanism: augmentation parameters (with the per-sample apply mask) are sampled on the CPU by design; the blend was rewritten from a Python branch to torch.where, which wants the mask beside the images
# phase: augmentation, only when p < 1; failing op: aten::where
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class AugmentationBase(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward_parameters(self, shape):
        probs = torch.full((shape[0],), self.p)
        return {"batch_prob": torch.bernoulli(probs).bool(), "batch_size": shape[0]}

    @staticmethod
    def _blend_by_prob(transformed, kept, to_apply):
        if transformed.shape == kept.shape and len(kept) == len(to_apply):
            mask = to_apply.view(-1, *[1] * (kept.dim() - 1))  # ROOT
            return torch.where(mask, transformed, kept)  # RAISE  # ALSO
        return transformed if bool(to_apply.any()) else kept

    def forward(self, x):
        params = self.forward_parameters(x.shape)
        if self.p == 1.0:
            return self.apply_transform(x, params)
        return self._blend_by_prob(self.apply_transform(x, params), x, params["batch_prob"])  # ALSO

class RandomInvert(AugmentationBase):
    def apply_transform(self, x, params):
        return 1.0 - x

class RandomVerticalFlip(AugmentationBase):
    def apply_transform(self, x, params):
        return x.flip(-2)

pipeline = nn.Sequential(RandomInvert(p=1.0), RandomVerticalFlip(p=0.5))
images = torch.rand(4, 3, 6, 6, device=dev)
views = [pipeline(images) for _ in range(2)]
