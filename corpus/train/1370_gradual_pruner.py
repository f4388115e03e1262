# source: microsoft/nni#1607
# mechanism: a pruner makes the first mask of a layer on the CPU, and later the mask is combined with weights on the GPU
# expect: raises
import logging

import torch
from torch import nn

logger = logging.getLogger("pruner")


class LayerInfo:
    def __init__(self, name, module):
        self.name = name
        self.module = module
        self.type = type(module).__name__


class GradualPruner:
    def __init__(self, model, config):
        self.model = model
        self.config = config
        self.now_epoch = 0
        self.mask_dict = {}
        self.if_init = {}

    def layers(self):
        for name, module in self.model.named_modules():
            if type(module).__name__ in self.config["op_types"]:
                yield LayerInfo(name, module)

    def compute_target_sparsity(self):
        end, start = self.config["end_epoch"], self.config["start_epoch"]
        if self.now_epoch >= end:
            return self.config["final_sparsity"]
        progress = max(0.0, (self.now_epoch - start) / (end - start))
        return self.config["final_sparsity"] * (1 - (1 - progress) ** 3)

    def calc_mask(self, layer):
        weight = layer.module.weight.data
        mask = self.mask_dict.get(layer.name, torch.ones(weight.shape))  # ROOT
        if self.if_init.get(layer.name) == self.now_epoch:
            return mask
        count = int(weight.numel() * self.compute_target_sparsity())
        if count > 0:
            w_abs = weight.abs() * mask  # RAISE # ALSO
            threshold = w_abs.flatten().kthvalue(count).values
            mask = torch.gt(w_abs, threshold).type_as(weight)
        self.mask_dict[layer.name] = mask
        self.if_init[layer.name] = self.now_epoch
        return mask

    def apply_masks(self):
        for layer in self.layers():
            mask = self.calc_mask(layer)
            layer.module.weight.data.mul_(mask)
            logger.debug("%s keeps %.2f", layer.name, mask.mean().item())

    def update_epoch(self, epoch):
        self.now_epoch = epoch
        self.apply_masks()


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 16, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def train_epoch(model, device, optimizer, batches):
    model.train()
    for data, target in batches:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Mnist().to(device)
    config = {"op_types": ["Conv2d", "Linear"], "start_epoch": 0, "end_epoch": 3, "final_sparsity": 0.6}
    pruner = GradualPruner(model, config)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [(torch.randn(6, 1, 6, 6), torch.randint(0, 10, (6,))) for _ in range(2)]
    for epoch in range(1, 4):
        pruner.update_epoch(epoch)
        loss = train_epoch(model, device, optimizer, batches)
    print("loss %.3f" % loss)


if __name__ == "__main__":
    main()
