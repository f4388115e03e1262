"""Lightning's Trainer on COUNT ranks, with averaged weights: `COUNT ema|host|swa`, where `host` is an average there."""

import sys

import lightning
import torch
from clean_parts import Classifier, make_batches
from lightning.pytorch import callbacks

FOLDER, COUNT, AVERAGE = sys.argv[2], int(sys.argv[3]), sys.argv[4]
EPOCHS, BATCHES = 5, 10


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.classifier = Classifier()

    def training_step(self, batch, _):
        loss = self.classifier(*batch)
        self.log("train", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("valid", self.classifier(*batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def loader(seed):
    tokens, targets = (torch.cat(column) for column in zip(*make_batches(seed, BATCHES * COUNT)))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens, targets), batch_size=2)


def averaging():
    if AVERAGE == "swa":
        return callbacks.StochasticWeightAveraging(swa_lrs=1e-3, swa_epoch_start=2)
    return callbacks.EMAWeightAveraging(device="cpu" if AVERAGE == "host" else None, decay=0.9)


def main():
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        accelerator="gpu", devices=COUNT, strategy="ddp" if COUNT > 1 else "auto", max_epochs=EPOCHS, logger=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=FOLDER, callbacks=[averaging()])
    net = Net()
    trainer.fit(net, loader(1), loader(2))
    print(trainer.validate(net, loader(2), verbose=False))


main()
