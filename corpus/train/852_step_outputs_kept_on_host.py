# source: Lightning-AI/pytorch-lightning PR#10631 (analysis in #10595)
# mechanism: [data not moved] moved away: with a memory option the evaluation loop stores the outputs of the validation steps on the CPU, the module combines them at the end of the epoch with its own weights
# phase: end of validation epoch; failing op: aten::linear / addmm (mat1 on cpu)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def recursive_detach(value, to_cpu=False):
    if isinstance(value, dict):
        return {k: recursive_detach(v, to_cpu) for k, v in value.items()}
    return value.detach().cpu() if to_cpu else value.detach()

class Trainer:
    def __init__(self, device, move_metrics_to_cpu=False):
        self.device, self.move_metrics_to_cpu = device, move_metrics_to_cpu

    def validate(self, module, loader):
        module.to(self.device).eval()
        outputs = []
        for batch in loader:
            out = module.validation_step([t.to(self.device) for t in batch])
            outputs.append(recursive_detach(out, to_cpu=self.move_metrics_to_cpu))  # ROOT
        return module.validation_epoch_end(outputs)  # ALSO

class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.instance, self.attention, self.head = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)

    def validation_step(self, batch):
        x, y = batch
        return {"h": self.instance(x).relu(), "y": y}

    def validation_epoch_end(self, outputs):
        h = torch.cat([o["h"] for o in outputs])
        weight = self.attention(h).softmax(0)  # RAISE
        return nn.functional.cross_entropy(self.head(weight * h), torch.cat([o["y"] for o in outputs]))

loader = [(torch.randn(3, 4), torch.randint(0, 2, (3,))) for _ in range(2)]
Trainer(dev).validate(Bags(), loader)
Trainer(dev, move_metrics_to_cpu=True).validate(Bags(), loader)
