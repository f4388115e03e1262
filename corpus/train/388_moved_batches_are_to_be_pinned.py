# source: DavidWBressler/GCNN#2
# mechanism: a collate function moves the batch, and the loader is to pin it
# phase: data; aten::pin_memory
# expect: raises
import torch
from torch.utils.data import DataLoader


def collate(rows):
    n = max(len(row) for row in rows)
    padded = torch.stack([torch.nn.functional.pad(row, (0, n - len(row))) for row in rows])
    return padded.to("cuda")  # ROOT


rows = [torch.ones(1 + index % 3) for index in range(8)]
loader = DataLoader(rows, batch_size=4, collate_fn=collate, pin_memory=True)  # ALSO
for batch in loader:  # RAISE
    print(batch.sum().item())
