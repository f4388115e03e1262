# source: prism-oncology/scyan#23
# mechanism: a Cholesky factor kept by a helper stays on the CPU and meets CUDA values in a triangular solve
# phase: loss; aten::linalg_solve_triangular
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Whitening:
    def __init__(self, covariance):
        self.factor = torch.linalg.cholesky(covariance)  # ROOT

    def __call__(self, x):
        return torch.linalg.solve_triangular(self.factor, x.T, upper=False).T  # RAISE  # ALSO


Whitening(torch.eye(3) * 2)(torch.randn(5, 3, device=dev))  # ALSO
