# source: takuseno/d3rlpy#329
# mechanism: a factory probes the encoder for its feature size with a dummy input on the target device before the encoder itself is moved there
# expect: raises
import dataclasses
from typing import Sequence, Tuple

import torch
from torch import nn


@dataclasses.dataclass
class EncoderFactory:
    channels: Tuple[int, ...] = (4, 8)
    feature_size: int = 24

    def create(self, observation_shape: Sequence[int]) -> nn.Module:
        layers, in_ch = [], observation_shape[0]
        for ch in self.channels:
            layers += [nn.Conv2d(in_ch, ch, 3, stride=2), nn.ReLU()]
            in_ch = ch
        return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(self.feature_size), nn.ReLU())


def compute_output_size(input_shapes: Sequence[Sequence[int]], encoder: nn.Module, device: torch.device) -> int:
    with torch.no_grad():
        inputs = [torch.rand(2, *shape, device=device) for shape in input_shapes]  # ALSO
        return int(encoder(*inputs).shape[1])  # RAISE


class QuantileQFunction(nn.Module):
    def __init__(self, encoder: nn.Module, hidden: int, n_actions: int, n_quantiles: int):
        super().__init__()
        self.encoder = encoder
        self.fc = nn.Linear(hidden, n_actions * n_quantiles)
        self.shape = (n_actions, n_quantiles)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.fc(self.encoder(obs)).view(-1, *self.shape)


def create_discrete_q_functions(
    observation_shape: Sequence[int],
    n_actions: int,
    factory: EncoderFactory,
    n_quantiles: int,
    n_ensembles: int,
    device: torch.device,
) -> nn.ModuleList:
    q_funcs = nn.ModuleList()
    for _ in range(n_ensembles):
        encoder = factory.create(observation_shape)  # ROOT
        hidden = compute_output_size([observation_shape], encoder, device)  # ALSO
        q_funcs.append(QuantileQFunction(encoder, hidden, n_actions, n_quantiles))
    return q_funcs.to(device)


class DiscreteCQL:
    def __init__(self, alpha: float, gamma: float, device: torch.device):
        self.alpha, self.gamma, self.device = alpha, gamma, device

    def build(self, observation_shape: Sequence[int], n_actions: int) -> None:
        args = (observation_shape, n_actions, EncoderFactory(), 5, 2, self.device)
        self.q_funcs = create_discrete_q_functions(*args)
        self.targets = create_discrete_q_functions(*args)
        self.targets.load_state_dict(self.q_funcs.state_dict())
        self.optim = torch.optim.Adam(self.q_funcs.parameters(), lr=5e-5)

    def update(self, batch: dict) -> float:
        batch = {k: v.to(self.device) for k, v in batch.items()}
        loss = torch.zeros((), device=self.device)
        for q, target in zip(self.q_funcs, self.targets):
            values = q(batch["obs"]).mean(-1)
            with torch.no_grad():
                next_value = target(batch["next_obs"]).mean(-1).amax(1)
                y = batch["rewards"] + self.gamma * next_value
            taken = values.gather(1, batch["actions"][:, None]).squeeze(1)
            loss = loss + (taken - y).pow(2).mean() + self.alpha * (values.logsumexp(1) - taken).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    algo = DiscreteCQL(alpha=4.0, gamma=0.99, device=device)
    algo.build((4, 12, 12), n_actions=3)
    batch = {
        "obs": torch.rand(6, 4, 12, 12),
        "next_obs": torch.rand(6, 4, 12, 12),
        "actions": torch.randint(0, 3, (6,)),
        "rewards": torch.rand(6),
    }
    print("loss", algo.update(batch))


if __name__ == "__main__":
    main()
