# source: none; an attribute of a sample is taken out beside one that is moved
# mechanism: a post office moves the addresses of a parcel, and takes its weights as the belt gave them
# phase: sorting; failing op: aten::mul.Tensor
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Parcel:
    address: torch.Tensor
    weight: torch.Tensor


def belt(count):
    for _ in range(count):
        yield Parcel(torch.randn(4, 2), torch.rand(4))


def cost(zone, weight):
    price = zone.exp()
    return (price * weight).sum()  # RAISE


class Office:
    def __init__(self, place):
        self.place = place
        self.zones = nn.Linear(2, 1).to(place)

    def sort(self, parcel):
        address = parcel.address.to(self.place)
        weight = parcel.weight  # ROOT
        return cost(self.zones(address).squeeze(1), weight)  # ALSO


office = Office("cuda")
print(sum(office.sort(parcel).item() for parcel in belt(2)))
