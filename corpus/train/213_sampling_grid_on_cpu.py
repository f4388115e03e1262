# source: PTB-MR/mrpro#823, KaiyangZhou/deep-person-reid#275
# mechanism: a sampling grid is computed on the CPU from sizes alone; the check is the operator's own
# phase: forward; aten::grid_sampler
# expect: raises
import torch

import torch.nn.functional as F

dev = torch.device("cuda", 0)

images = torch.randn(1, 1, 4, 4, device=dev)
theta = torch.tensor([[[1.0, 0.0, 0.2], [0.0, 1.0, 0.0]]])  # ROOT
grid = F.affine_grid(theta, list(images.shape), align_corners=False)  # ALSO
warped = F.grid_sample(images, grid, align_corners=False)  # RAISE  # ALSO
