# source: hao-ai-lab/FastVideo PR#420
# mechanism: [offloaded module not brought back] decoding stage parks the shared VAE on the CPU when it is done; the encoding stage of the next request uses it without moving it
# phase: second inference request; failing op: aten::conv3d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class VideoVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Conv3d(3, 4, 1), nn.Conv3d(4, 3, 1)

    def encode(self, x):
        return self.enc(x)  # RAISE


class Stage:
    def __init__(self, vae, offload):
        self.vae, self.offload = vae, offload


class EncodingStage(Stage):
    def __call__(self, batch):
        batch["latent"] = self.vae.encode(batch["image"].to(dev).unsqueeze(2))  # ALSO


class DecodingStage(Stage):
    def __call__(self, batch):
        self.vae.to(dev)
        batch["output"] = self.vae.dec(batch["latent"]).cpu()
        if self.offload:
            self.vae.to("cpu")  # ROOT


vae = VideoVAE().to(dev).eval().requires_grad_(False)
stages = [EncodingStage(vae, True), DecodingStage(vae, True)]
for _ in range(2):
    request = {"image": torch.randn(1, 3, 8, 8)}
    for stage in stages:
        stage(request)
