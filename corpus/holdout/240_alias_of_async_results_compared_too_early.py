# source: https://github.com/pytorch/pytorch/issues/140296
# expect: silent
# kinds: async-race
# Two results come back with non_blocking=True and are compared on the host at once.
import torch

device = torch.device("cuda", 0)


def fetch(tensor):
    return tensor.to("cpu", non_blocking=True)  # ROOT


def same(left, right):
    return bool((left == right).all())  # RAISE


expected = fetch(torch.arange(1000, device=device))
found = fetch(torch.arange(1000, device=device))
print(same(expected.view(10, 100), found.view(10, 100)))
