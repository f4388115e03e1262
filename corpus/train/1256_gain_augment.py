# source: iver56/torch-audiomentations#18
# mechanism: random transform parameters are drawn from a distribution on the CPU and multiplied with audio on the GPU
# expect: raises
import random

import torch
from torch import nn


def db_to_amplitude(db):
    return 10 ** (db / 20)


class BaseTransform(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p
        self.parameters_ = {}

    def randomize_parameters(self, samples):
        raise NotImplementedError

    def apply(self, samples):
        raise NotImplementedError

    def forward(self, samples):
        if not self.training:
            return samples
        chosen = torch.rand(samples.shape[0], device=samples.device) < self.p
        if not chosen.any():
            chosen[0] = True
        out = samples.clone()
        selected = out[chosen]
        self.randomize_parameters(selected)
        out[chosen] = self.apply_to(selected)
        return out


class PolarityInversion(BaseTransform):
    def randomize_parameters(self, samples):
        pass

    def apply_to(self, samples):
        return -samples


class Gain(BaseTransform):
    def __init__(self, min_gain_in_db=-18.0, max_gain_in_db=6.0, p=0.5):
        super().__init__(p)
        self.min_gain_in_db = min_gain_in_db
        self.max_gain_in_db = max_gain_in_db

    def randomize_parameters(self, samples):
        distribution = torch.distributions.Uniform(
            low=torch.tensor(self.min_gain_in_db, dtype=torch.float32),  # ALSO
            high=torch.tensor(self.max_gain_in_db, dtype=torch.float32),  # ALSO
        )
        gains_db = distribution.sample(sample_shape=(samples.shape[0],))
        self.parameters_["gain_factors"] = db_to_amplitude(gains_db).view(-1, 1, 1)  # ROOT

    def apply_to(self, samples):
        return samples * self.parameters_["gain_factors"]  # RAISE # ALSO


class Compose(nn.Module):
    def __init__(self, transforms, shuffle=False):
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        self.shuffle = shuffle

    def forward(self, samples):
        order = list(self.transforms)
        if self.shuffle:
            random.shuffle(order)
        for transform in order:
            samples = transform(samples)
        return samples


class Tagger(nn.Module):
    def __init__(self, n_tags=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 8, 9, stride=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.head = nn.Linear(8, n_tags)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    augment = Compose([PolarityInversion(p=0.5), Gain(p=0.8)]).to(device)
    model = Tagger().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        audio = torch.randn(4, 1, 200).to(device)
        target = torch.randint(0, 2, (4, 5), device=device).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(augment(audio)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
