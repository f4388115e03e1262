# source: none: a correct program
# mechanism: none; a key cache made per layer on the layer's device, sampling with a generator of the GPU
# phase: n/a
# expect: clean
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class StaticCache:
    def __init__(self, devices, rows, length, width):
        self.keys = [torch.zeros(rows, length, width, device=device) for device in devices]
        self.used = 0

    def update(self, layer, keys):
        positions = torch.arange(self.used, self.used + keys.shape[1], device=keys.device)
        self.keys[layer].index_copy_(1, positions, keys)
        return self.keys[layer][:, : self.used + keys.shape[1]]


class Decoder(torch.nn.Module):
    def __init__(self, words, width, devices):
        super().__init__()
        self.devices = devices
        self.words = torch.nn.Embedding(words, width).to(devices[0])
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width).to(device) for device in devices)
        self.head = torch.nn.Linear(width, words).to(devices[-1])

    def forward(self, ids, cache):
        x = self.words(ids)
        for index, (layer, device) in enumerate(zip(self.layers, self.devices)):
            x = x.to(device)
            keys = cache.update(index, layer(x))
            x = x + (x @ keys.transpose(1, 2)).softmax(-1) @ keys
        cache.used += ids.shape[1]
        return self.head(x[:, -1])


@torch.no_grad()
def generate(decoder, ids, steps, seed):
    generator = torch.Generator(device=decoder.devices[-1]).manual_seed(seed)
    cache = StaticCache(decoder.devices, len(ids), ids.shape[1] + steps, 4)
    new, temperature = ids.to(decoder.devices[0]), torch.tensor(0.7)
    for _ in range(steps):
        logits = decoder(new, cache) / temperature
        new = logits.softmax(-1).multinomial(1, generator=generator).to(decoder.devices[0])
        ids = torch.cat([ids, new.cpu()], dim=1)
    return ids


assert generate(Decoder(8, 4, [first, first, second]), torch.tensor([[1, 2], [3, 4]]), steps=3, seed=0).shape == (2, 5)
