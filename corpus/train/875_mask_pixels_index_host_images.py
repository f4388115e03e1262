# source: nerfstudio-project/nerfstudio PR#1061
# mechanism: [index tensor] images of the scene stay on the host, the masks are on CUDA; pixel coordinates found in the mask index every entry of the batch
# phase: data loading (pixel sampler); failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch

dev = torch.device("cuda", 0)


class PixelSampler:
    def __init__(self, rays):
        self.rays = rays

    def sample(self, batch):
        n, h, w, _ = batch["image"].shape
        if "mask" in batch:
            inside = torch.nonzero(batch["mask"][..., 0])  # ROOT
            chosen = inside[torch.randint(0, len(inside), (self.rays,))]  # ALSO
        else:
            chosen = (torch.rand(self.rays, 3) * torch.tensor([n, h, w])).long()
        c, y, x = chosen.unbind(-1)  # ALSO
        rays = {k: v[c, y, x] for k, v in batch.items() if k != "image_idx"}  # RAISE
        rays["image_idx"] = batch["image_idx"][c]
        return rays

scene = {"image_idx": torch.arange(2, device=dev), "image": torch.rand(2, 4, 4, 3)}
sampler = PixelSampler(5)
sampler.sample(scene)
sampler.sample({**scene, "mask": torch.ones(2, 4, 4, 1, dtype=torch.bool, device=dev)})
