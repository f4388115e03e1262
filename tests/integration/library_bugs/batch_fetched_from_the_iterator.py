# source: Lightning-AI/pytorch-lightning#18831
# mechanism: a training_step that takes dataloader_iter fetches the batch itself; Lightning does not transfer batches that it has not fetched
import tempfile
import warnings
import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class Encoder(nn.Module):
    def __init__(self, inputs, latent):
        super().__init__()
        self.hidden, self.code = nn.Linear(inputs, 32), nn.Linear(32, latent)

    def forward(self, x):
        return self.code(torch.relu(self.hidden(x)))


class Decoder(nn.Module):
    def __init__(self, latent, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, outputs))

    def forward(self, z):
        return self.layers(z)


class LitAutoEncoder(L.LightningModule):
    def __init__(self, pixels=64, latent=3, micro_batches=2):
        super().__init__()
        self.encoder, self.decoder = Encoder(pixels, latent), Decoder(latent, pixels)
        self.micro_batches = micro_batches

    def reconstruction(self, batch):
        x, _ = batch
        loss = 0.0
        for part in x.flatten(1).chunk(self.micro_batches):
            loss = loss + nn.functional.mse_loss(self.decoder(self.encoder(part)), part)
        return loss / self.micro_batches

    def training_step(self, dataloader_iter):
        batch, batch_idx, _ = next(dataloader_iter)  # ROOT
        return self.reconstruction(batch)

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.reconstruction(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


torch.manual_seed(0)
digits = TensorDataset(torch.rand(48, 1, 8, 8), torch.arange(48) % 10)
with tempfile.TemporaryDirectory() as root:
    trainer = L.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, default_root_dir=root,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LitAutoEncoder(), DataLoader(digits, batch_size=16), DataLoader(digits, batch_size=16))
