# source: huggingface/diffusers PR#6937
# mechanism: after each call hooks are installed anew, without the device that the user had chosen
# phase: second call; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Bring:
    def __init__(self, module, place):
        self.place = torch.device(place)
        self.handle = module.register_forward_pre_hook(self.before)

    def before(self, module, args):
        module.to(self.place)
        return tuple(one.to(self.place) for one in args)


class Pipeline:
    def __init__(self):
        self.denoise = nn.Conv2d(2, 2, 3, padding=1)
        self.hook = None

    def install(self, device="cuda"):
        if self.hook is not None:
            self.hook.handle.remove()
        self.denoise.to("cpu")
        self.hook = Bring(self.denoise, device)

    def finish(self):
        if self.hook is not None:
            self.install()  # ROOT

    def step(self, x, noise):
        return x - 0.1 * noise  # RAISE

    @torch.no_grad()
    def __call__(self, x):
        for _ in range(2):
            x = self.step(x, self.denoise(x))
        self.finish()
        return x


pipeline = Pipeline()
pipeline.install(device="cuda:1")
for seed in range(2):
    print(pipeline(torch.rand(1, 2, 4, 4, device="cuda:1")).mean())
