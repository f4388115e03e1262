# source: sangyun884/HR-VITON#47
# mechanism: a GAN loss makes its targets on a device that its caller did not hand on, and the default of the argument is the CPU
# expect: raises
import argparse

import torch
from torch import nn


class GANLoss(nn.Module):
    def __init__(self, use_lsgan=True, real_label=1.0, fake_label=0.0, device="cpu"):
        super().__init__()
        self.real_label = real_label
        self.fake_label = fake_label
        self.device = device
        self.loss = nn.MSELoss() if use_lsgan else nn.BCEWithLogitsLoss()

    def get_target_tensor(self, prediction, target_is_real):
        value = self.real_label if target_is_real else self.fake_label
        return torch.full(prediction.shape, value, device=self.device)  # ALSO

    def __call__(self, predictions, target_is_real):
        loss = 0
        for prediction in predictions:
            target = self.get_target_tensor(prediction, target_is_real)  # ALSO
            loss = loss + self.loss(prediction, target)  # RAISE
        return loss


class ConditionGenerator(nn.Module):
    def __init__(self, channels=4, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes + 2, 3, padding=1))

    def forward(self, cloth, agnostic):
        out = self.body(torch.cat([cloth, agnostic], dim=1))
        return out[:, :2], out[:, 2:]


class MultiscaleDiscriminator(nn.Module):
    def __init__(self, channels, scales=2):
        super().__init__()
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Conv2d(channels, 4, 3, stride=2), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 1)) for _ in range(scales)]
        )

    def forward(self, x):
        outputs = []
        for net in self.nets:
            outputs.append(net(x))
            x = nn.functional.avg_pool2d(x, 2)
        return outputs


class TryOnLoader:
    def __init__(self, opt, batches=2):
        self.opt = opt
        self.batches = batches

    def __iter__(self):
        for _ in range(self.batches):
            yield {
                "cloth": torch.rand(2, 3, 16, 16),
                "agnostic": torch.rand(2, 1, 16, 16),
                "parse": torch.randint(0, 3, (2, 16, 16)),
            }


def train(opt, loader, generator, discriminator, device):
    generator.to(device).train()
    discriminator.to(device).train()
    criterion_gan = GANLoss(use_lsgan=not opt.no_lsgan)  # ROOT
    criterion_parse = nn.CrossEntropyLoss()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=opt.lr)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=opt.lr)
    for step, inputs in enumerate(loader):
        inputs = {key: value.to(device) for key, value in inputs.items()}
        flow, segmap = generator(inputs["cloth"], inputs["agnostic"])
        loss_parse = criterion_parse(segmap, inputs["parse"]) + flow.abs().mean()
        loss_g = loss_parse + criterion_gan(discriminator(segmap.softmax(1)), True)
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        real = nn.functional.one_hot(inputs["parse"], 3).permute(0, 3, 1, 2).float()
        fake = segmap.detach().softmax(1)
        loss_d = criterion_gan(discriminator(real), True) + criterion_gan(discriminator(fake), False)
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
        print("step", step, round(loss_g.item(), 4), round(loss_d.item(), 4))


def get_opt():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--no_lsgan", action="store_true")
    return parser.parse_args([])


if __name__ == "__main__":
    torch.manual_seed(0)
    options = get_opt()
    train(options, TryOnLoader(options), ConditionGenerator(), MultiscaleDiscriminator(3), torch.device("cuda"))
