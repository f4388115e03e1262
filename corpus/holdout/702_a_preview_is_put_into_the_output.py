# source: kornia/kornia#3066, PR#3084; torchgeo/terratorch#362
# mechanism: augmentation container saves a host copy of the image for later display, but stores it into the very list that it returns when several data keys are given
# phase: training step; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

class HFlip(nn.Module):
    def forward(self, x):
        return x.flip(-1)

class AugmentationSequential(nn.Module):
    def __init__(self, *ops, data_keys):
        super().__init__()
        self.ops, self.data_keys, self._output_image = nn.Sequential(*ops), data_keys, None

    def _detach_image(self, image):
        return image.detach().cpu()
    def forward(self, *inputs):
        outputs = [self.ops(x) for x in inputs]
        self._output_image = outputs  # ALSO
        if len(self.data_keys) > 1 and "input" in self.data_keys:
            idx = self.data_keys.index("input")
            self._output_image[idx] = self._detach_image(outputs[idx])  # ROOT
        return outputs

class SegTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.aug = AugmentationSequential(HFlip(), data_keys=["input", "mask"])
        self.stem, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 1)

    def on_after_batch_transfer(self, batch):
        return dict(zip(batch, self.aug(*batch.values())))
    def training_step(self, batch):
        x = self.stem(batch["image"]).relu()  # RAISE
        return nn.functional.cross_entropy(self.head(x), batch["mask"])

task = SegTask().to(dev)
batch = {"image": torch.rand(2, 3, 8, 8, device=dev), "mask": torch.randint(0, 2, (2, 8, 8), device=dev)}
task.training_step(task.on_after_batch_transfer(batch)).backward()
