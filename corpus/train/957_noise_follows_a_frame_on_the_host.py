# source: huggingface/diffusers PR#6484 (the preprocessed conditioning image is moved to the execution device before its noise is drawn)
# mechanism: [generator device] the noise takes the device of an image that is still on the host, the caller's generator is on the GPU
# phase: pipeline call; failing op: aten::randn with generator
# expect: raises
# root: pipeline_stable_video_diffusion.py:__call__: image = preprocess(image) without .to(device)
import torch

dev = torch.device('cuda', 0)


class VideoPipeline:
    def __init__(self, vae, device):
        self.vae, self._execution_device = vae, device

    def preprocess(self, frame):
        return torch.tensor(frame).float().div(127.5).sub(1.0)[None]  # ALSO

    def __call__(self, frame, generator, noise_aug=0.02):
        device = self._execution_device
        image = self.preprocess(frame)                 # ROOT
        noise = torch.randn(image.shape, generator=generator, device=image.device)   # RAISE  # ALSO
        image = image + noise_aug * noise
        return self.vae(image.to(device))

vae = torch.nn.Conv2d(1, 2, 1).to(dev)
pipe = VideoPipeline(vae, dev)
pipe([[[0, 64], [128, 255]]], generator=torch.Generator(dev).manual_seed(42))
