# source: jeshraghian/snntorch PR#188 ('mse_membrane_loss device is set incorrectly to cpu'; 'a cleaner fix might be to update _prediction_check')
# mechanism: [factory call without device=] target filled on the device that a shared helper derives from the output, and the helper answers cpu for cuda:0
# phase: loss; failing op: aten::sub
# expect: raises
# root: LossFunctions._prediction_check: device derived wrongly
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class LossFunctions:
    def _prediction_check(self, out):
        steps, _, outputs = out.shape
        device = "cuda" if str(out.device) == "cuda" else "cpu"  # ROOT
        return device, steps, outputs  # ALSO

class MembraneLoss(LossFunctions):
    def __init__(self, on_target=1.0, off_target=0.0):
        self.on_target, self.off_target = on_target, off_target

    def __call__(self, mem, labels):
        device, steps, outputs = self._prediction_check(mem)
        hot = F.one_hot(labels, outputs).to(device)  # ALSO
        target = self.off_target + (self.on_target - self.off_target) * hot.float()
        loss = 0
        for t in range(steps):
            loss = loss + (mem[t] - target).square().mean()  # RAISE
        return loss / steps

lif = nn.Linear(4, 3).to(dev)
x, y = torch.randn(6, 2, 4, device=dev), torch.tensor([0, 2], device=dev)
MembraneLoss()(lif(x), y).backward()
