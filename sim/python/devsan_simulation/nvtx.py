"""torch._C._nvtx: ranges nest and are numbered; there is no profiler to see them."""

import itertools
import threading


class Ranges(threading.local):
    depth = 0

    def push(self, message):
        self.depth += 1
        return self.depth - 1

    def pop(self):
        self.depth = max(self.depth - 1, 0)
        return self.depth


class Nvtx:
    def __init__(self):
        ranges, ids = Ranges(), itertools.count(1)
        self.rangePushA = ranges.push
        self.rangePop = ranges.pop
        self.rangeStartA = lambda message: next(ids)
        self.rangeEnd = lambda range_id: None
        self.markA = lambda message: None
        self.deviceRangeStart = lambda message, stream: next(ids)
        self.deviceRangeEnd = lambda range_id, stream: None


def names(extension, core):
    return {"_nvtx": Nvtx()}
