# source: otenim/GLCIC-PyTorch#8, JDAI-CV/FaceX-Zoo#68
# mechanism: a restored model is wrapped for several GPUs, and nothing moves it to the first of them; torch's own Python code looks at its weights and refuses
# phase: evaluation; the check of nn.DataParallel, no operator
# expect: raises
# needs: 2 GPUs
import io

import torch
from torch import nn


class Inpainter(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encode = nn.Conv2d(channels + 1, 8, 3, padding=1)
        self.decode = nn.Conv2d(8, channels, 3, padding=1)

    def forward(self, image):
        return self.decode(torch.relu(self.encode(image))).sigmoid()


def restore(file):
    file.seek(0)
    model = Inpainter(3)
    model.load_state_dict(torch.load(file, map_location="cpu"))
    return model.eval()


def fill(model, pictures, masks, device):
    with torch.no_grad():
        return model(torch.cat([pictures, masks], dim=1).to(device))  # RAISE


saved = io.BytesIO()
torch.save(Inpainter(3).state_dict(), saved)
model = nn.DataParallel(restore(saved), device_ids=[0, 1])  # ROOT
print(fill(model, torch.rand(4, 3, 8, 8), torch.zeros(4, 1, 8, 8), "cuda:0").shape)
