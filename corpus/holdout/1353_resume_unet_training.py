# source: huggingface/diffusers#2382
# mechanism: the hook that loads a checkpoint gives the moving average the tensors of an average read on the CPU, and does not bring them to the device again
# expect: raises
import os
import tempfile

import torch
from torch import nn


class TinyUNet(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.down = nn.Conv2d(1, channels, 3, padding=1)
        self.mid = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.down(x))
        return self.up(h + torch.relu(self.mid(h)))


class EMAModel:
    def __init__(self, parameters, decay=0.95):
        self.shadow_params = [p.clone().detach() for p in parameters]
        self.decay = decay
        self.optimization_step = 0

    def to(self, device):
        self.shadow_params = [p.to(device) for p in self.shadow_params]
        return self

    @torch.no_grad()
    def step(self, parameters):
        self.optimization_step += 1
        for shadow, param in zip(self.shadow_params, parameters):
            shadow.sub_((1 - self.decay) * (shadow - param))  # RAISE

    def state_dict(self):
        return {"decay": self.decay, "optimization_step": self.optimization_step, "shadow_params": self.shadow_params}

    def load_state_dict(self, state):
        self.decay = state["decay"]
        self.optimization_step = state["optimization_step"]
        self.shadow_params = [p.detach().clone() for p in state["shadow_params"]]

    def save_pretrained(self, folder):
        torch.save(self.state_dict(), os.path.join(folder, "ema.pt"))

    @classmethod
    def from_pretrained(cls, folder):
        ema = cls([])
        ema.load_state_dict(torch.load(os.path.join(folder, "ema.pt"), map_location="cpu"))
        return ema


class Runner:
    def __init__(self, device):
        self.device = device
        self.unet = TinyUNet().to(device)
        self.ema = EMAModel(self.unet.parameters())
        self.optimizer = torch.optim.AdamW(self.unet.parameters(), lr=1e-3)

    def save(self, folder):
        self.ema.save_pretrained(folder)
        torch.save({"unet": self.unet.state_dict(), "opt": self.optimizer.state_dict()}, os.path.join(folder, "run.pt"))

    def load(self, folder):
        loaded = EMAModel.from_pretrained(folder)  # ALSO
        self.ema.load_state_dict(loaded.state_dict())  # ROOT
        run = torch.load(os.path.join(folder, "run.pt"), map_location="cpu")
        self.unet.load_state_dict(run["unet"])
        self.optimizer.load_state_dict(run["opt"])

    def train(self, steps):
        for _ in range(steps):
            clean = torch.rand(2, 1, 6, 6, device=self.device)
            noise = torch.randn_like(clean)
            loss = nn.functional.mse_loss(self.unet(clean + noise), noise)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.ema.step(self.unet.parameters())
        return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        first = Runner(device)
        first.train(2)
        first.save(folder)
        second = Runner(device)
        second.load(folder)
        print("resumed loss %.3f" % second.train(2))


if __name__ == "__main__":
    main()
