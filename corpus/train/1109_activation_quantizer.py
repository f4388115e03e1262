# source: casper-hansen/AutoAWQ PR#196
# mechanism: a quantizer goes through the layers, and each layer is put on its own GPU; the activations of the calibration that are kept from the layer before are not moved to it.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x, shift=None):
        h = self.norm(x)  # RAISE
        if shift is not None:
            h = h + shift
        return x + self.down(torch.relu(self.up(h)))


class BlockLM(nn.Module):
    def __init__(self, vocab=32, dim=16, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Block(dim) for _ in range(layers))


def get_best_device(index):
    return torch.device("cuda", index % torch.cuda.device_count())


def pseudo_quantize(weight, bits=4):
    scale = weight.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (weight / scale).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * scale


class ActivationQuantizer:
    def __init__(self, model, samples):
        self.model = model
        self.module_kwargs = {"shift": torch.full((16,), 0.1)}
        self.inps = self.capture_first_inputs(samples)

    def capture_first_inputs(self, samples):
        device = get_best_device(0)
        self.model.embed.to(device)
        inps = self.model.embed(samples.to(device))
        self.model.embed.cpu()
        return inps

    def collect_features(self, layer):
        feats, handles = {}, []
        for name, linear in layer.named_children():
            if isinstance(linear, nn.Linear):
                handles.append(linear.register_forward_hook(lambda m, i, o, n=name: feats.__setitem__(n, i[0])))
        device = layer.norm.weight.device
        kwargs = {k: v.to(device) for k, v in self.module_kwargs.items()}  # ALSO
        self.inps = layer(self.inps, **kwargs)  # ROOT
        for handle in handles:
            handle.remove()
        return feats

    @torch.no_grad()
    def quantize(self):
        report = []
        for index, layer in enumerate(self.model.layers):
            layer.to(get_best_device(index))  # ALSO
            feats = self.collect_features(layer)
            for name, feat in feats.items():
                linear = getattr(layer, name)
                error = feat @ (linear.weight - pseudo_quantize(linear.weight)).t()
                report.append(error.pow(2).mean().item())
                linear.weight.data = pseudo_quantize(linear.weight.data)
            layer.cpu()
        return report


def main():
    torch.manual_seed(0)
    assert torch.cuda.device_count() > 1, "needs cuda:0 and cuda:1"
    samples = torch.randint(0, 32, (2, 6))
    print(ActivationQuantizer(BlockLM(), samples).quantize())


if __name__ == "__main__":
    main()
