# source: NVlabs/MUNIT#33
# mechanism: a preprocessing function makes its mean with the type of the batch, which is a CPU type also when the batch is on the GPU
# expect: raises
from types import SimpleNamespace

import torch
from torch import nn


def feature_preprocess(batch):
    tensortype = type(batch.data)  # ALSO
    (r, g, b) = torch.chunk(batch, 3, dim=1)
    batch = torch.cat((b, g, r), dim=1)
    batch = (batch + 1) * 255 * 0.5
    mean = tensortype(batch.size())  # ROOT
    mean[:, 0, :, :] = 103.939
    mean[:, 1, :, :] = 116.779
    mean[:, 2, :, :] = 123.680
    return batch.sub(mean)  # RAISE # ALSO


class FeatureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, x):
        return self.conv2(torch.relu(self.conv1(x)))


class Generator(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.enc_content = nn.Conv2d(3, dim, 3, padding=1)
        self.enc_style = nn.Sequential(nn.Conv2d(3, dim, 3), nn.AdaptiveAvgPool2d(1))
        self.dec = nn.Conv2d(dim, 3, 3, padding=1)

    def encode(self, images):
        return self.enc_content(images), self.enc_style(images)

    def decode(self, content, style):
        return torch.tanh(self.dec(content + style))


class TranslationTrainer(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.gen_a, self.gen_b = Generator(), Generator()
        self.instancenorm = nn.InstanceNorm2d(6, affine=False)
        params = list(self.gen_a.parameters()) + list(self.gen_b.parameters())
        self.gen_opt = torch.optim.Adam(params, lr=hp.lr, betas=(0.5, 0.999))
        if hp.vgg_w > 0:
            self.vgg = FeatureNet().eval().requires_grad_(False)

    def compute_vgg_loss(self, img, target):
        img_fea = self.vgg(feature_preprocess(img))
        target_fea = self.vgg(feature_preprocess(target))
        return torch.mean((self.instancenorm(img_fea) - self.instancenorm(target_fea)) ** 2)

    def gen_update(self, x_a, x_b):
        self.gen_opt.zero_grad()
        c_a, s_a = self.gen_a.encode(x_a)
        c_b, _ = self.gen_b.encode(x_b)
        x_ba = self.gen_a.decode(c_b, s_a)
        x_aa = self.gen_a.decode(c_a, s_a)
        loss = (x_aa - x_a).abs().mean() * self.hp.recon_w
        if self.hp.vgg_w > 0:
            loss = loss + self.hp.vgg_w * self.compute_vgg_loss(x_ba, x_b)
        loss.backward()
        self.gen_opt.step()
        return loss.item()


def loader(n):
    for _ in range(n):
        yield torch.rand(2, 3, 8, 8) * 2 - 1, torch.rand(2, 3, 8, 8) * 2 - 1


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = TranslationTrainer(SimpleNamespace(lr=1e-3, recon_w=10.0, vgg_w=1.0)).to(device)
    for images_a, images_b in loader(2):
        loss = trainer.gen_update(images_a.to(device), images_b.to(device))
    print("loss %.3f" % loss)


if __name__ == "__main__":
    main()
