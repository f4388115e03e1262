# source: none; an entry that is a pair is taken out of a dictionary of an object
# mechanism: a balance keeps the offset and the scale that it found on one GPU, and takes them out for work on the other
# phase: second worker; failing op: aten::sub.Tensor
# expect: raises
# needs: 2 GPUs
import torch


class Balance:
    def __init__(self):
        self.found = {}

    def gauge(self, kind, rows):
        offset = rows.amin(0)
        self.found.update({kind: (offset, rows.amax(0) - offset)})

    def weigh(self, kind, rows):
        offset, scale = self.found[kind]  # ROOT
        return (rows - offset) / scale  # RAISE  # ALSO


class Worker:
    def __init__(self, place, balance):
        self.place = place
        self.balance = balance

    def gauge(self, kind, rows):
        self.balance.gauge(kind, rows.to(self.place))

    def work(self, kind, rows):
        return self.balance.weigh(kind, rows=rows.to(self.place)).sum()


balance = Balance()
workers = [Worker(torch.device("cuda", k), balance) for k in range(2)]
workers[0].gauge("salt", torch.randn(5, 2))
for worker in workers:
    worker.work("salt", torch.randn(3, 2))
