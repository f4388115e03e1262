# source: pytorch/vision PR#787
# mechanism: [factory call without device=] transform keeps mean and deviation as Python lists and makes tensors of them at each call, on CPU; the batch it is given is on CUDA
# phase: preprocessing; failing op: aten::sub_
# expect: raises
import torch

dev = torch.device("cuda", 0)


def channel_stats(values, like):
    stat = torch.tensor(values, dtype=like.dtype)  # ROOT
    return stat[:, None, None]  # ALSO


def normalize(image, mean, std, inplace=False):
    if not inplace:
        image = image.clone()
    image.sub_(channel_stats(mean, image)).div_(channel_stats(std, image))  # RAISE
    return image


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return normalize(image, self.mean, self.std)


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


pipeline = Compose(lambda b: b.float() / 255, lambda b: b.flip(-1), Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
pipeline(torch.randint(0, 256, (2, 3, 4, 4), device=dev, dtype=torch.uint8))
