# source: arneschneuing/DiffSBDD PR#49
# mechanism: [index tensor] sampled coordinates are brought to the CPU, the batch mask of the same sample is not; a CUDA mask cannot index a CPU tensor
# phase: post-processing; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
# root: optimize.py, inpaint.py: lig_mask used as sampled (fix: lig_mask.cpu())
import torch

dev = torch.device('cuda', 0)


def batch_to_list(data, mask):
    return [data[mask == i] for i in range(int(mask.max()) + 1)]  # RAISE  # ALSO

sample = {"xh": torch.randn(5, 4, device=dev), "mask": torch.tensor([0, 0, 0, 1, 1], device=dev)}
coords = sample["xh"][:, :3].cpu()
lig_mask = sample["mask"]  # ROOT
molecules = batch_to_list(coords, lig_mask)  # ALSO
