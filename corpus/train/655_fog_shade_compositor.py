# source: nerfstudio-project/nerfstudio PR#2381 (fix: background_color.to(comp_rgb.device) in combine_rgb)
# mechanism: a color constant of a module goes as constructor argument into a renderer's plain attribute and from there as argument to a classmethod that adds it
# phase: training loop; comp + shade * (1 - weight)
# expect: raises
from typing import Dict, Optional, Union

import torch
from torch import Tensor, nn

CLEAR = torch.tensor([0.0, 0.0])
MURKY = torch.tensor([0.7, 0.3])
SHADES = {"clear": CLEAR, "murky": MURKY}

ShadeSpec = Union[str, Tensor]
SHADE_OVERRIDE: Optional[Tensor] = None


class EchoCompositor(nn.Module):
    """Standard compositing along a sonar beam."""

    def __init__(self, shade: ShadeSpec = "random") -> None:
        super().__init__()
        self.shade: ShadeSpec = shade

    @classmethod
    def combine(cls, values: Tensor, weights: Tensor, shade: ShadeSpec = "random") -> Tensor:
        comp = torch.sum(weights * values, dim=-2)
        accumulated = torch.sum(weights, dim=-2)
        if SHADE_OVERRIDE is not None:
            shade = cls.get_shade(SHADE_OVERRIDE, shape=comp.shape, device=comp.device)
        elif isinstance(shade, str) and shade == "random":
            return comp
        elif isinstance(shade, str) and shade == "last_sample":
            shade = values[..., -1, :]

        assert isinstance(shade, torch.Tensor)
        comp = comp + shade * (1.0 - accumulated)  # ROOT # RAISE
        return comp

    @classmethod
    def get_shade(cls, shade: ShadeSpec, shape, device) -> Tensor:
        if isinstance(shade, str):
            shade = SHADES[shade]
        return shade.expand(shape).to(device)

    def forward(self, values: Tensor, weights: Tensor, shade: Optional[ShadeSpec] = None) -> Tensor:
        if shade is None:
            shade = self.shade
        return self.combine(values, weights, shade=shade)


class SonarModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3), nn.Sigmoid())
        self.compositor = EchoCompositor(shade=MURKY)
        self.mse = nn.MSELoss()

    def get_outputs(self, beams: Tensor) -> Dict[str, Tensor]:
        steps = torch.linspace(0.1, 1.0, 8, device=beams.device)
        out = self.field(beams[:, None, :] * steps[:, None])
        weights = torch.softmax(out[..., 2:], dim=-2) * 0.9
        return {"value": self.compositor(values=out[..., :2], weights=weights)}


class Trainer:
    def __init__(self, device: str = "cuda") -> None:
        self.device = torch.device(device)
        self.model = SonarModel().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def train(self) -> None:
        for step in range(3):
            outputs = self.model.get_outputs(torch.randn(32, 3, device=self.device))
            loss = self.model.mse(outputs["value"], torch.rand(32, 2).to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Trainer().train()
