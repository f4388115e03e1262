# source: huggingface/diffusers#7602
# mechanism: [model-parallel hook] decorator that runs the align hook for methods other than forward throws away what pre_forward returns, so the weights are in place but the input is not
# phase: inference; failing op: aten::linear / addmm (cuda:1 weights, cuda:0 input)
# expect: raises
# needs: 2 GPUs
import functools
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class AlignHook:
    def __init__(self, where):
        self.where = where

    def pre_forward(self, module, *args):
        module.to(self.where)
        return tuple(a.to(self.where) for a in args)

def with_hook(method):
    @functools.wraps(method)
    def wrapper(self, *args):
        if hasattr(self, "_hook"):
            self._hook.pre_forward(self, *args)  # ROOT
        return method(self, *args)
    return wrapper

class ImageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, 2)

    @with_hook
    def encode(self, x):
        return self.enc(x).tanh()  # RAISE

vae = ImageEncoder()
vae._hook = AlignHook(d1)
image = torch.randn(2, 6, device=dev)
latent = vae.encode(image)
