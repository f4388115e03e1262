# source: https://github.com/ROCm/pytorch/issues/3194
# expect: clean
# Pinned batches, copied ahead on a stream of their own, which the default stream waits for.
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda", 0)
loader = DataLoader(TensorDataset(torch.randn(16, 6), torch.randint(0, 2, (16,))), batch_size=4, pin_memory=True)
model = torch.nn.Linear(6, 2).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
side = torch.cuda.Stream()


def prefetched(batches):
    ahead = None
    for inputs, labels in batches:
        with torch.cuda.stream(side):
            batch = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if ahead is not None:
            yield ahead
        torch.cuda.current_stream().wait_stream(side)
        for tensor in batch:
            tensor.record_stream(torch.cuda.current_stream())
        ahead = batch
    yield ahead


running = torch.zeros((), device=device)
for inputs, labels in prefetched(loader):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    running += loss.detach()
print(f"{float(running) / len(loader) > 0}")
