# source: https://github.com/stepfun-ai/SteptronOss/pull/38
# expect: silent
# kinds: async-race
# The copy runs on the transfer stream, and the host waits for the current one.
import torch

device = torch.device("cuda", 0)
transfer = torch.cuda.Stream()
state = torch.randn(16, device=device)
buffer = torch.empty(16, pin_memory=True)
transfer.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(transfer):
    buffer.copy_(state, non_blocking=True)  # ROOT
torch.cuda.current_stream().synchronize()
checksum = buffer.sum()  # RAISE
