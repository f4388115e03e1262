# source: huggingface/diffusers PR#14252 (Modular Diffusers: 'Fix group offload device mismatch')
# mechanism: [model-parallel hook] pipeline asks an accelerate hook for the execution device; a group-offloaded module has none, so its parking device is returned
# phase: sampling; failing op: aten::sub
# expect: raises
# root: modular pipeline _execution_device: only the accelerate hook is looked at
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def execution_device(module):
    hook = getattr(module, "_hf_hook", None)
    return hook.execution_device if hook else module.weight.device  # ROOT

unet = nn.Linear(3, 3)
unet.register_forward_pre_hook(lambda mod, args: tuple(a.to(mod.to(dev).weight.device) for a in args))
latents = torch.randn(2, 3, device=execution_device(unet))
for _ in range(2):
    latents = latents - 0.1 * unet(latents)  # RAISE
