# source: huggingface/peft PR#1742
# mechanism: adding one more adapter moves the whole adapter layer to the device of the base weight, so another adapter that was parked on the CPU comes along and no longer fits the CPU code that uses it.
# expect: raises
import torch
from torch import nn


class LoraLayer(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.lora_A = nn.ModuleDict()
        self.lora_B = nn.ModuleDict()
        self.scaling = {}
        self.active = None

    def update_layer(self, name, rank, alpha):
        self.lora_A[name] = nn.Linear(self.base.in_features, rank, bias=False)
        self.lora_B[name] = nn.Linear(rank, self.base.out_features, bias=False)
        self.scaling[name] = alpha / rank
        self.to(self.base.weight.device)  # ROOT

    def move_adapter(self, name, device):
        self.lora_A[name].to(device)
        self.lora_B[name].to(device)

    def delta_weight(self, name):
        return self.lora_B[name].weight @ self.lora_A[name].weight * self.scaling[name]

    def forward(self, x):
        y = self.base(x)
        if self.active is not None:
            y = y + self.lora_B[self.active](self.lora_A[self.active](x)) * self.scaling[self.active]
        return y


class AdapterRegistry:
    def __init__(self, model):
        self.layers = [m for m in model.modules() if isinstance(m, LoraLayer)]
        self.parked = set()

    def add(self, name, rank=2, alpha=4):
        for layer in self.layers:
            layer.update_layer(name, rank, alpha)

    def activate(self, name):
        for layer in self.layers:
            if name in self.parked:
                layer.move_adapter(name, layer.base.weight.device)
            layer.active = name
        self.parked.discard(name)

    def park(self, name):
        for layer in self.layers:
            layer.move_adapter(name, "cpu")
            layer.active = None if layer.active == name else layer.active
        self.parked.add(name)

    @torch.no_grad()
    def export_merged(self, name, host_weights):
        merged = []
        for layer, weight in zip(self.layers, host_weights):
            merged.append(weight + layer.delta_weight(name))  # RAISE
        return merged


def build_model(dim=8):
    return nn.Sequential(LoraLayer(nn.Linear(dim, dim)), nn.GELU(), LoraLayer(nn.Linear(dim, dim)))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = build_model().to(device)
    registry = AdapterRegistry(model)
    host_weights = [layer.base.weight.detach().cpu().clone() for layer in registry.layers]
    registry.add("summaries")
    registry.activate("summaries")
    print(model(torch.randn(2, 8, device=device)).mean().item())
    registry.park("summaries")
    registry.add("chat")
    registry.activate("chat")
    print(model(torch.randn(2, 8, device=device)).mean().item())
    print(sum(w.norm().item() for w in registry.export_merged("summaries", host_weights)))


if __name__ == "__main__":
    main()
