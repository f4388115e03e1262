# source: none; the shape of augmentations that are told "cuda" by whoever trains on one GPU
# mechanism: a call tells a helper "cuda", which is the first GPU; the second worker's batch is on another one
# phase: augmentation of the second worker; aten::add
# expect: raises
# needs: 2 GPUs
import torch


def grain(shape, strength, place):
    noise = torch.randn(shape, device=place)
    return noise * strength


def film(shape, strength, place):
    return grain(shape, strength, place).clamp(-1, 1)


class Augment:
    def __init__(self, strength):
        self.strength = strength

    def __call__(self, images):
        added = film(images.shape, self.strength, "cuda")  # ROOT
        return images + added  # RAISE


augment = Augment(0.1)
for worker in range(2):
    images = torch.rand(2, 3, 4, 4).to(f"cuda:{worker}")
    print(augment(images).device)
