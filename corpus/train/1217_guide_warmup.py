# source: scverse/scvi-tools#2616
# mechanism: a callback runs the guide once, in a hook that comes before the trainer moves the module, so that the lazily made parameters of the store stay on the host
# expect: raises
from typing import Callable, Dict, Iterable, List

import torch
from torch import nn
from torch.distributions import LogNormal, Poisson, kl_divergence
from torch.utils.data import DataLoader, Dataset


class ParamStore:
    """Parameters by name, made when they are first asked for."""

    def __init__(self):
        self._params: Dict[str, torch.Tensor] = {}

    def get_param(self, name: str, init: Callable[[], torch.Tensor]) -> torch.Tensor:
        if name not in self._params:
            self._params[name] = init().requires_grad_(True)
        return self._params[name]

    def values(self) -> Iterable[torch.Tensor]:
        return self._params.values()


class CountDataset(Dataset):
    def __init__(self, cells: int, genes: int):
        gen = torch.Generator().manual_seed(2)
        self.counts = torch.poisson(torch.rand(cells, genes, generator=gen) * 5, generator=gen)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, i: int) -> Dict[str, torch.Tensor]:
        return {"x": self.counts[i], "library": self.counts[i].sum().clamp_min(1).view(1)}


class SignatureModule(nn.Module):
    def __init__(self, genes: int, store: ParamStore):
        super().__init__()
        self.genes, self.store = genes, store
        self.register_buffer("prior_loc", torch.zeros(genes))
        self.register_buffer("prior_scale", torch.ones(genes))
        self.bias = nn.Parameter(torch.zeros(genes))

    @property
    def device(self) -> torch.device:
        return self.bias.device

    def guide(self, x: torch.Tensor, library: torch.Tensor) -> LogNormal:
        loc = self.store.get_param("rate_loc", lambda: torch.log1p(x.mean(0) / library.mean() * self.genes).detach())
        log_scale = self.store.get_param("rate_log_scale", lambda: torch.full_like(self.prior_scale, -2.0))
        return LogNormal(loc, log_scale.exp())

    def elbo(self, x: torch.Tensor, library: torch.Tensor) -> torch.Tensor:
        posterior = self.guide(x, library)
        prior = LogNormal(self.prior_loc, self.prior_scale)
        share = torch.softmax(posterior.rsample().log() + self.bias, dim=-1)  # RAISE
        likelihood = Poisson(library * share + 1e-6).log_prob(x).sum(-1).mean()
        return likelihood - kl_divergence(posterior.base_dist, prior.base_dist).sum() / len(x)


class Callback:
    def setup(self, trainer: "Trainer", module: SignatureModule) -> None:
        """Before the module is placed."""

    def on_fit_start(self, trainer: "Trainer", module: SignatureModule) -> None:
        """After the module is placed."""


class GuideWarmup(Callback):
    """Makes the guide's parameters before the optimizer asks for them."""

    def __init__(self, loader: DataLoader):
        self.loader = loader

    def setup(self, trainer: "Trainer", module: SignatureModule) -> None:  # ROOT
        for tensors in self.loader:
            tensors = {k: v.to(module.device) for k, v in tensors.items()}
            module.guide(**tensors)
            break


class Trainer:
    def __init__(self, device: torch.device, max_epochs: int, callbacks: List[Callback]):
        self.device, self.max_epochs, self.callbacks = device, max_epochs, callbacks

    def fit(self, module: SignatureModule, loader: DataLoader) -> float:
        for callback in self.callbacks:
            callback.setup(self, module)
        module.to(self.device)  # ALSO
        for callback in self.callbacks:
            callback.on_fit_start(self, module)
        optimizer = torch.optim.Adam([*module.parameters(), *module.store.values()], lr=0.02)
        loss = torch.zeros(())
        for _ in range(self.max_epochs):
            for batch in loader:
                batch = {k: v.to(self.device) for k, v in batch.items()}
                loss = -module.elbo(**batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(CountDataset(48, 10), batch_size=16, shuffle=True)
    module = SignatureModule(10, ParamStore())
    trainer = Trainer(device, max_epochs=2, callbacks=[GuideWarmup(loader)])
    print("loss", trainer.fit(module, loader))


if __name__ == "__main__":
    main()
