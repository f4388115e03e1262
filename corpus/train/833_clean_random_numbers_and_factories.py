# source: clean control, must not be reported
# mechanism: none; CPU generator for CPU draws that are moved afterwards, CUDA generator for CUDA draws, factories by context, by *_like and by new_*, shuffling indices kept on the host
# phase: n/a
# expect: clean
import torch

dev = torch.device("cuda", 0)


host_gen = torch.Generator().manual_seed(0)
gen = torch.Generator(device=dev).manual_seed(0)
latents = torch.randn(2, 4, generator=host_gen).to(dev)
latents = latents + torch.randn(2, 4, generator=gen, device=dev)
with torch.device(dev):
    mask = torch.tril(torch.ones(4, 4)).bool()
    pos = torch.arange(4)
scores = (latents @ latents.new_ones(4, 4)).unsqueeze(1).expand(2, 4, 4)
scores = scores.masked_fill(~mask, float("-inf")).softmax(-1)
table = torch.nn.Embedding(8, 4, device=dev)
h = table(pos) + torch.zeros_like(latents)[:1]
data, order = torch.randn(10, 4), torch.randperm(10, generator=host_gen)
for rows in order.split(5):
    batch = data[rows].to(dev)
    picked = batch[:, torch.randint(0, 4, (2,), generator=gen, device=dev)]
    h = h + picked.mean()
