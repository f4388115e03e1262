# source: luogen1996/LLaVA-HR PR#17; haotian-liu/LLaVA PR#483
# mechanism: [model-parallel hook] loader receives a device and puts the language model there; the vision tower goes to "cuda"
# phase: forward; failing op: aten::addmm
# expect: raises
# needs: 2 GPUs
# root: load_pretrained_model: vision_tower.to("cuda") instead of device
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)

def load_pretrained_model(device):
    lm, tower = nn.Linear(4, 4), nn.Linear(6, 4)
    lm.to(device)
    tower.to(device="cuda")  # ROOT
    return lm, tower

lm, tower = load_pretrained_model(d1)
images = torch.randn(2, 6).to(d1)
feats = tower(images)  # RAISE
out = lm(feats)
