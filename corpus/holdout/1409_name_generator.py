# source: Lightning-AI/pytorch-lightning#3738
# mechanism: the first hidden and cell state of a character LSTM are made with zeros and no device in a training step that a trainer calls with a moved batch
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LightModule(nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class NameModel(LightModule):
    lr = 5e-3

    def __init__(self, n_letters, n_categories, hidden_size=12, n_layers=1):
        super().__init__()
        self.n_layers, self.hidden_size = n_layers, hidden_size
        self.n_categories = n_categories
        self.embedding = nn.Embedding(n_letters, 8)
        self.lstm = nn.LSTM(8 + n_categories, hidden_size, n_layers)
        self.out = nn.Linear(hidden_size, n_letters)

    def forward(self, category, letters, hidden, cell):
        emb = self.embedding(letters).transpose(0, 1)
        category = category.unsqueeze(0).expand(emb.shape[0], -1, -1)
        output, (hidden, cell) = self.lstm(torch.cat([category, emb], dim=-1), (hidden, cell))  # RAISE # ALSO
        return self.out(output).transpose(0, 1), hidden, cell

    def init_hidden(self, batch_size):
        shape = (self.n_layers, batch_size, self.hidden_size)
        zeros = torch.zeros(shape)  # ROOT
        return zeros, zeros.clone()  # ALSO

    def training_step(self, batch, batch_idx):
        category, letters, targets = batch
        category = F.one_hot(category, self.n_categories).float()
        hidden, cell = self.init_hidden(letters.shape[0])  # ALSO
        logits, _, _ = self(category, letters, hidden, cell)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Trainer:
    def __init__(self, max_epochs, gpus=None):
        self.max_epochs = max_epochs
        self.device = torch.device("cuda", 0) if gpus else torch.device("cpu")

    def transfer(self, batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(self.device)
        return [self.transfer(b) for b in batch]

    def fit(self, module, loader):
        module.to(self.device)
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            for idx, batch in enumerate(loader):
                loss = module.training_step(self.transfer(batch), idx)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: {loss.item():.3f}")


def make_loader(n_letters=20, n_categories=3, rows=16, length=6):
    letters = torch.randint(0, n_letters, (rows, length + 1))
    category = torch.randint(0, n_categories, (rows,))
    return DataLoader(TensorDataset(category, letters[:, :-1], letters[:, 1:]), batch_size=8)


if __name__ == "__main__":
    trainer = Trainer(max_epochs=1, gpus=1 if torch.cuda.is_available() else None)
    trainer.fit(NameModel(20, 3), make_loader())
