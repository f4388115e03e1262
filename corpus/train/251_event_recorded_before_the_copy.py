# source: https://github.com/sgl-project/sglang/pull/16493
# expect: silent
# kinds: async-race
# There is an event, but it was recorded before the copy that it is waited for.
import torch

device = torch.device("cuda", 0)
done = torch.cuda.Event()
sampled = torch.randint(0, 100, (8,), device=device)
done.record()
tokens = sampled.to("cpu", non_blocking=True)  # ROOT
done.synchronize()
print(int(tokens.sum()) >= 0)  # RAISE
