"""Lightning's Trainer on one device and by DDP on two: fit, validate, checkpoints, resume, and mixed precision.

    lightning_fit.py DEVICE FOLDER COUNT     COUNT ranks, which Lightning starts, share a batch
"""

import pathlib
import sys

import lightning
import torch
from library_report import report

DEVICE, FOLDER, COUNT = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
ROWS = 48


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(),
                                          torch.nn.Linear(16, 3))
        self.losses = []

    def loss(self, batch):
        inputs, targets = batch
        assert inputs.device == self.device and self.device.type == DEVICE
        return torch.nn.functional.cross_entropy(self.layers(inputs), targets)

    def training_step(self, batch, _):
        loss = self.loss(batch)
        self.log("train", loss, prog_bar=True)
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def validation_step(self, batch, _):
        self.log("valid", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


def loader(seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.utils.data.TensorDataset(torch.randn(ROWS, 8, generator=generator),
                                          torch.randint(3, (ROWS,), generator=generator))
    return torch.utils.data.DataLoader(rows, batch_size=8 // COUNT)


def make_net():
    lightning.seed_everything(0, verbose=False)
    return Net()


def make_trainer(**settings):
    settings = {"max_epochs": 2, "enable_checkpointing": False, **settings}
    if COUNT > 1:
        settings["strategy"] = "ddp"
    trainer = lightning.Trainer(accelerator={"cpu": "cpu", "cuda": "gpu"}[DEVICE], devices=COUNT, logger=False,
                                enable_progress_bar=False, enable_model_summary=False, default_root_dir=FOLDER,
                                **settings)
    assert trainer.world_size == COUNT
    return trainer


def fit(**settings):
    net, trainer = make_net(), make_trainer(**settings)
    trainer.fit(net, loader(1), loader(2))
    return {"losses": net.losses, "valid": trainer.callback_metrics["valid"].item()}


def save_and_resume():
    """One epoch, a checkpoint, and the other by another trainer from it."""
    first, trainer = make_net(), make_trainer(max_epochs=1)
    trainer.fit(first, loader(1), loader(2))
    path = FOLDER / "saved.ckpt"
    trainer.save_checkpoint(path)
    loaded = Net.load_from_checkpoint(path).to(DEVICE)
    inputs = torch.ones(2, 8, device=DEVICE)
    assert torch.equal(loaded.layers(inputs), first.to(DEVICE).layers(inputs))
    second, trainer = Net(), make_trainer()
    trainer.fit(second, loader(1), loader(2), ckpt_path=path)
    return {"losses": first.losses + second.losses, "valid": trainer.callback_metrics["valid"].item()}


SCENARIOS = {
    "fit": fit,
    "accumulation": lambda: fit(accumulate_grad_batches=2, gradient_clip_val=0.5),
    "bf16": lambda: fit(precision="bf16-mixed"),
    # A CPU has no GradScaler: there half precision by float16 is compared with single precision.
    "fp16": lambda: fit(precision="16-mixed" if DEVICE == "cuda" else "32-true"),
    "resume": save_and_resume,
}

report(SCENARIOS)
