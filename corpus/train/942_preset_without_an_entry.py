# source: ostris/ai-toolkit#1026
# mechanism: [model-parallel hook] device-state presets move the active modules to the GPU and park the others; a preset that is not listed parks everything
# phase: embedding caching; failing op: aten::embedding (index on cuda, weight on cpu)
# expect: raises
# root: set_device_state_preset: no branch for cache_text_encoder
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


presets = {"cache_latents": ["vae"], "cache_clip": ["clip"], "generate": ["vae", "text_encoder"]}  # ROOT
parts = {"vae": nn.Linear(4, 4), "text_encoder": nn.Embedding(6, 4)}
def set_device_state(preset):
    for name, m in parts.items():
        m.to(dev if name in presets.get(preset, []) else "cpu")

for stage in ("generate", "cache_text_encoder"):
    set_device_state(stage)
    h = parts["text_encoder"](torch.tensor([1, 4, 2], device=dev))  # RAISE
