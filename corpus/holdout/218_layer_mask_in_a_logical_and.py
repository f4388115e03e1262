# source: princeton-nlp/CoFiPruning#12
# mechanism: a mask of layers is made on the CPU and joined by & with a comparison made on CUDA
# phase: distillation loss; aten::bitwise_and
# expect: raises
import torch

dev = torch.device("cuda", 0)

losses = torch.tensor([[0.3, 0.1, 0.7]], device=dev)
existing = torch.tensor([True, True, False])  # ROOT
nearest = losses.argmin(1, keepdim=True)
usable = existing & (nearest <= torch.arange(3, device=dev))  # RAISE  # ALSO
