# source: none; a dictionary of tensors on the device takes in another one by `|=`, and is unpacked by who asked for it
# mechanism: a desk gives orders as a dictionary of keyword arguments; prices of a table on the host join it by `|=`
# phase: settlement; failing op: aten::mul.Tensor
# expect: raises
import torch


class Prices:
    def __init__(self, goods):
        self.table = torch.linspace(1.0, 2.0, goods)

    def look_up(self, goods):
        return self.table[goods.cpu()].round(decimals=2)  # ALSO


class Desk:
    def __init__(self, prices, device):
        self.prices = prices
        self.device = device

    def orders(self, count):
        goods = torch.arange(count, device=self.device)
        asked = {"amount": torch.ones(count, device=self.device), "discount": torch.zeros(count, device=self.device)}
        price = self.prices.look_up(goods)  # ALSO
        asked |= {"price": price}  # ROOT
        return asked


def settle(*, amount, discount, price):
    due = amount * (1 - discount)
    return due * price  # RAISE


desk = Desk(Prices(6), torch.device("cuda"))
orders = desk.orders(4)
print(settle(**orders).sum())
