# source: Lightning-AI/pytorch-lightning#888
# mechanism: custom batch object whose to() (called by Lightning's batch transfer) drops the moved copy of one field
import tempfile
import warnings
import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")


class Pairs(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = 3 + i % 4
        return torch.randint(1, 30, (n,), generator=g), i % 3


class Batch:
    def __init__(self, tokens, mask, labels):
        self.tokens, self.mask, self.labels = tokens, mask, labels

    def __len__(self):
        return len(self.labels)

    def to(self, device, non_blocking=False):
        self.tokens = self.tokens.to(device, non_blocking=non_blocking)
        self.labels = self.labels.to(device, non_blocking=non_blocking)
        self.mask.to(device, non_blocking=non_blocking)  # ROOT
        return self


def collate(samples):
    tokens = nn.utils.rnn.pad_sequence([s[0] for s in samples], batch_first=True)
    return Batch(tokens, (tokens != 0).float(), torch.tensor([s[1] for s in samples]))


class Tagger(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def pool(self, states, mask):
        weights = mask / mask.sum(1, keepdim=True)
        return torch.einsum("bth,bt->bh", states, weights)

    def training_step(self, batch, idx):
        states, _ = self.rnn(self.embed(batch.tokens))
        logits = self.head(self.pool(states, batch.mask))
        return nn.functional.cross_entropy(logits, batch.labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


with tempfile.TemporaryDirectory() as root:
    trainer = L.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, default_root_dir=root)
    trainer.fit(Tagger(), DataLoader(Pairs(), batch_size=4, collate_fn=collate))
