# source: muelea/selfcontact#5
# mechanism: a loss that is given a device keeps that device for its own tensors only and leaves the module it wraps where it was made
# expect: raises
import torch
from torch import nn


class BodyEssentials:
    def __init__(self, vertices=24, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.faces = torch.randint(0, vertices, (20, 3), generator=gen)
        template = torch.rand(vertices, 3, generator=gen)
        self.geodesic = torch.cdist(template, template)
        self.template = template


class BodySegment(nn.Module):
    def __init__(self, name, faces, vertices):
        super().__init__()
        self.name = name
        chosen = torch.zeros(vertices, dtype=torch.bool)
        chosen[faces.unique()] = True
        self.register_buffer("chosen", chosen)

    def inside(self, exterior):
        return ~exterior & self.chosen[None]


class SelfContact(nn.Module):
    def __init__(self, essentials, geodesic_threshold=0.3, euclidean_threshold=0.4):
        super().__init__()
        self.geodesic_threshold = geodesic_threshold
        self.euclidean_threshold = euclidean_threshold
        self.register_buffer("faces", essentials.faces)
        self.register_buffer("far_apart", essentials.geodesic > geodesic_threshold)
        half = len(essentials.faces) // 2
        count = len(essentials.template)
        self.segments = nn.ModuleList(
            [BodySegment("upper", essentials.faces[:half], count), BodySegment("lower", essentials.faces[half:], count)]
        )

    def segment_vertices(self, vertices):
        distance = torch.cdist(vertices, vertices)
        distance = distance.masked_fill(~self.far_apart[None], float("inf"))  # RAISE
        nearest, _ = distance.min(dim=2)
        incontact = nearest < self.euclidean_threshold
        exterior = nearest > 0.1
        for segment in self.segments:
            exterior = exterior & ~segment.inside(exterior)
        return nearest, incontact, exterior


class SelfContactLoss(nn.Module):
    def __init__(self, contact_module, inside_weight=0.5, outside_weight=0.1, device="cuda"):
        super().__init__()
        self.device = torch.device(device)
        self.contact = contact_module  # ROOT
        self.register_buffer("weights", torch.tensor([inside_weight, outside_weight], device=self.device))

    def forward(self, vertices):
        nearest, incontact, exterior = self.contact.segment_vertices(vertices)
        nearest = torch.where(torch.isfinite(nearest), nearest, torch.zeros_like(nearest))
        inside = (nearest * ~exterior).sum(1)
        outside = (nearest * (exterior & incontact)).sum(1)
        return (torch.stack([inside, outside], dim=1) * self.weights).sum(1).mean()


def fit(body, loss_function, steps):
    offsets = torch.zeros_like(body, requires_grad=True)
    optimizer = torch.optim.Adam([offsets], lr=0.01)
    for step in range(steps):
        loss = loss_function(body + offsets) + offsets.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, round(loss.item(), 4))


def main():
    torch.manual_seed(0)
    essentials = BodyEssentials()
    contact = SelfContact(essentials)  # ALSO
    loss_function = SelfContactLoss(contact, device="cuda")  # ALSO
    body = essentials.template[None].repeat(2, 1, 1).to(loss_function.device)
    fit(body, loss_function, 3)


if __name__ == "__main__":
    main()
