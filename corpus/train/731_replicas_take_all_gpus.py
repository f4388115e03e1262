# source: GaParmar/clean-fid#60, fix PR#65
# mechanism: [DataParallel] wrapper without device_ids takes all cards, the first being cuda:0; the wrapped model was put on cuda:1
# phase: image metric; failing op: DataParallel.forward ('module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cuda:1')
# expect: raises
# needs: 2 GPUs
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 1)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.bn = nn.BatchNorm2d(6)

    def forward(self, x):
        return self.bn(self.conv(x)).relu().mean((2, 3))

def build_feature_extractor(device, use_dataparallel=True):
    model = Backbone().eval().to(device)
    if use_dataparallel:
        model = torch.nn.DataParallel(model)  # ROOT
    def model_fn(x):
        return model(x)  # RAISE
    return model_fn

def get_batch_features(batch, model, device):
    with torch.no_grad():
        return model(batch.to(device)).detach().cpu().numpy()

def model_features(generator, model, device, num_gen=8, batch_size=4):
    feats = []
    for _ in range(num_gen // batch_size):
        z = torch.randn(batch_size, 5, device=device)
        feats.append(get_batch_features(generator(z).view(batch_size, 3, 8, 8), model, device))
    return np.concatenate(feats)

generator = nn.Sequential(nn.Linear(5, 192), nn.Tanh()).to(dev)
feats = model_features(generator, build_feature_extractor(dev), dev)
mu, sigma = feats.mean(0), np.cov(feats, rowvar=False)
