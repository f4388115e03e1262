# source: dptech-corp/Uni-Core#42
# mechanism: a trainer moves its model lazily, and makes the flattened moving average from the model that has not been moved
# expect: raises
import torch
from torch import nn
import torch.nn.functional as F


class Args:
    vocab = 12
    dim = 8
    ema_decay = 0.9
    updates = 3
    lr = 0.05
    cpu = False


class AtomEncoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 16, batch_first=True, dropout=0.0)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        return self.head(self.layer(self.embed(tokens)))


def flatten_params(params):
    return torch.cat([p.detach().reshape(-1).float() for p in params])


class FlatEMA:
    def __init__(self, params, decay):
        self.decay = decay
        self.param = flatten_params(params)

    def update(self, params):
        new_param = flatten_params(params)  # ALSO
        with torch.no_grad():
            diff = self.param - new_param  # RAISE # ALSO
            diff.mul_(1 - self.decay)
            self.param.sub_(diff)

    def state_dict(self):
        return {"param": self.param.cpu(), "decay": self.decay}


class Trainer:
    def __init__(self, args, model):
        self.args = args
        self.cuda = torch.cuda.is_available() and not args.cpu
        self.device = torch.device("cuda" if self.cuda else "cpu")
        self._model = model  # ALSO
        self._moved = False
        self._optimizer = None
        self.ema = None
        if args.ema_decay > 0:
            self.ema = FlatEMA(self._model.parameters(), args.ema_decay)  # ROOT

    @property
    def model(self):
        if not self._moved:
            self._model = self._model.to(self.device)
            self._moved = True
        return self._model

    @property
    def optimizer(self):
        if self._optimizer is None:
            self._optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.lr)
        return self._optimizer

    def _prepare_sample(self, sample):
        return {k: v.to(self.device) for k, v in sample.items()}

    def train_step(self, sample):
        sample = self._prepare_sample(sample)
        self.optimizer.zero_grad()
        logits = self.model(sample["tokens"])
        loss = F.cross_entropy(logits.flatten(0, 1), sample["target"].flatten())
        loss.backward()
        self.optimizer.step()
        if self.ema is not None:
            self.ema.update(self.model.parameters())
        return loss.item()


def batches(args):
    gen = torch.Generator().manual_seed(1)
    for _ in range(args.updates):
        target = torch.randint(0, args.vocab, (4, 6), generator=gen)
        tokens = target.clone()
        tokens[:, ::3] = 0
        yield {"tokens": tokens, "target": target}


def main():
    torch.manual_seed(0)
    args = Args()
    trainer = Trainer(args, AtomEncoder(args.vocab, args.dim))
    for sample in batches(args):
        print("loss %.3f" % trainer.train_step(sample))
    print(trainer.ema.state_dict()["param"].shape)


if __name__ == "__main__":
    main()
