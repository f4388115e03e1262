# source: pytorch/pytorch#33870, PR#38998
# mechanism: [zero-dim scalar] learned 0-dim scale is on the first GPU, the similarity matrix on the second; since 1.6 only a CPU scalar is moved for you, a CUDA one is not
# phase: forward; failing op: aten::mul (cuda:1 2-D x cuda:0 0-d)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class TwoTowers(nn.Module):
    def __init__(self, image_device, text_device):
        super().__init__()
        self.image = nn.Linear(6, 4, device=image_device)
        self.text = nn.Linear(5, 4, device=text_device)
        self.logit_scale = nn.Parameter(torch.tensor(2.6, device=image_device))  # ROOT

    def forward(self, image, text):
        text = F.normalize(self.text(text), dim=-1)
        image = F.normalize(self.image(image), dim=-1).to(text.device)
        return self.similarity(image, text)

    def similarity(self, image, text):
        cosine = image @ text.t()
        return cosine * self.logit_scale.exp()  # RAISE  # ALSO

model = TwoTowers(dev, d1)
model(torch.randn(3, 6, device=dev), torch.randn(3, 5, device=d1))
