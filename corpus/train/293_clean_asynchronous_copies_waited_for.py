# source: https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
# expect: clean
# Every way to wait for an asynchronous copy before its memory is used.
import torch

device = torch.device("cuda", 0)
source = torch.arange(64.0, device=device)

host = source.to("cpu", non_blocking=True)
torch.cuda.synchronize()
total = host.sum()

host = source.to("cpu", non_blocking=True)
torch.cuda.current_stream().synchronize()
total += host.sum()

host = source.to("cpu", non_blocking=True)
done = torch.cuda.Event()
done.record()
done.synchronize()
total += host.numpy().sum()

host = source.to("cpu", non_blocking=True)
done = torch.cuda.current_stream().record_event()
while not done.query():
    pass
total += host[3:7].sum()

host = source.to("cpu", non_blocking=True)
last = source[-1].item()  # waits for the stream that the copy is on
total += host.sum()

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    host = source.to("cpu", non_blocking=True)
    copied = side.record_event()
torch.cuda.current_stream().wait_event(copied)
source.mul_(2)
copied.synchronize()
total += host.sum()

host = source.to("cpu", non_blocking=True)
shape = host.view(8, 8).shape, host.is_pinned(), host.dtype, torch.empty_like(host), host.t()
again = host.to(device, non_blocking=True) + 1  # in order on one stream
assert total == torch.arange(64.0).sum() * 5 + torch.arange(64.0)[3:7].sum()
