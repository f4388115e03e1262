# source: NVIDIA/Megatron-LM#7398 (the inline reload in tensor_pop races its own D2H: no ordering edge on the group's offload event)
# mechanism: [async copy race] activation goes to a pinned buffer on the offload stream; a pop before the prefetch copies it back on the compute stream without waiting
# phase: backward; op: host-to-device copy from the target of an unfinished device-to-host copy on another stream
# expect: silent
# kinds: async-race
import torch

dev = torch.device("cuda", 0)


class ChunkOffload:
    def __init__(self):
        self.d2h, self.h2d = torch.cuda.Stream(dev), torch.cuda.Stream(dev)
        self.host, self.event, self.ready = {}, {}, {}

    def push(self, key, x):
        self.d2h.wait_stream(torch.cuda.current_stream(dev))
        with torch.cuda.stream(self.d2h):
            buf = torch.empty(x.shape, pin_memory=True)
            buf.copy_(x, non_blocking=True)
            self.event[key] = self.d2h.record_event()
        x.record_stream(self.d2h)
        self.host[key] = buf

    def reload(self, key):
        return self.host[key].to(dev, non_blocking=True)  # ROOT  # RAISE

    def prefetch(self, key):
        self.h2d.wait_event(self.event[key])
        with torch.cuda.stream(self.h2d):
            self.ready[key] = self.reload(key)

    def pop(self, key):
        if key in self.ready:
            torch.cuda.current_stream(dev).wait_stream(self.h2d)
            return self.ready.pop(key)
        return self.reload(key)


off = ChunkOffload()
w = [torch.randn(256, 256, device=dev) for _ in range(3)]
x = torch.randn(512, 256, device=dev)
for i in range(3):
    off.push(i, x)
    x = (x @ w[i]).relu()
g = torch.ones_like(x)
grads = {}
for i in (2, 1, 0):
    saved = off.pop(i)
    if i == 2:
        off.prefetch(1)
        off.prefetch(0)
    grads[i] = saved.t() @ g
    g = g @ w[i].t()
torch.cuda.synchronize(dev)
